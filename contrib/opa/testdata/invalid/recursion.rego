package p

decision := "x"
decision := a if a := decision
# findings:
# 4:1 error: rule data.p.decision is recursive: data.p.decision -> data.p.decision
