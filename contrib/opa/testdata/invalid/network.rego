package p

decision := "x" if http.send({"method": "get", "url": "http://x"}).status_code == 200
# findings:
# 3:20 error: unsafe built-in function calls in expression: http.send (a decision depends on its request only)
