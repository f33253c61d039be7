package p

decision = "x" {
	input.a == 1
}
# findings:
# 3:1 error: `if` keyword is required before rule body (this is Rego v1: write decision := x if { ... })
