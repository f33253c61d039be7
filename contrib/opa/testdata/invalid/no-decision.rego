package p

decisions := "x"
# findings:
# 1:1 error: the policy has no rule "decision" (write decision := "action" if { ... })
