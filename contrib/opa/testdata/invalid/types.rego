package p

decision := "x" if contains(1, "b")
# findings:
# 3:20 error: contains: invalid argument(s)
