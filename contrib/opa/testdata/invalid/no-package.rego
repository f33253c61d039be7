decision := "x"
# findings:
# 1:1 error: package expected
