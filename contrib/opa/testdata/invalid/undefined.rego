package p

decision := "x" if {
	contain(input.a, "b")
	y > 1
}
# findings:
# 4:2 error: undefined function contain
