package systemone_test

import (
	"fmt"

	"github.com/clefbench/clefbench/backends/systemone"
)

func Example() {
	req, err := systemone.ParseRequest([]byte(`{"state":"Refund me","questions":{
		"team":{"type":"choice","instructions":"Which team?","criteria":{"tech":null,"billing":"Money"}},
		"angry":{"type":"noul","instructions":"Is the customer angry?"}},"model":"jev-latest"}`), systemone.Limits{})
	if err != nil {
		panic(err)
	}
	resp, err := systemone.ParseResponse([]byte(`{"model":"jev-1.13.0","answers":{"angry":{"type":"noul","noul":0.31},
		"team":{"type":"choice","choice":"billing","confidence":0.86,"probabilities":{"billing":0.93,"tech":0.07}}}}`), systemone.Limits{})
	if err != nil {
		panic(err)
	}
	for i := range req.Questions {
		q := &req.Questions[i]
		a := resp.Answer(q, i)
		fmt.Println(q.ID, q.Candidates(), a.Check(q), a.Choice, a.Noul.V, a.Confidence.V)
	}
	other, _ := req.WithModel("clef-flash")
	fmt.Println(string(other[len(other)-22:]))
	// Output:
	// team [tech billing] <nil> billing 0 0.86
	// angry [true false] <nil>  0.31 0
	// ,"model":"clef-flash"}
}
