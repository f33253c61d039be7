# nothing
# findings:
# 0:0 error: empty module
