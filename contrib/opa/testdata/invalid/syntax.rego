package p

decision := "x" if {
	input.a = = 1
}
# findings:
# 4:12 error: unexpected eq token
