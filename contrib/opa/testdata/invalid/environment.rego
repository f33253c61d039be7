package p

decision := opa.runtime().env.HOME
# findings:
# 3:13 error: unsafe built-in function calls in expression: opa.runtime (a decision depends on its request only)
