package systemone

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func mustResponse(t *testing.T, body string) *Response {
	t.Helper()
	r, err := ParseResponse([]byte(body), Limits{})
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return r
}

func TestAnswersFindTheirQuestions(t *testing.T) {
	req := mustRequest(t, `{"input":"x","questions":[{"type":"predicate"},{"type":"predicate","name":"b"},{"type":"predicate"}]}`)
	resp := mustResponse(t, `{"answers":[{"type":"predicate","probability":0.1,"name":null},{"type":"predicate","probability":0.2,"name":"b"},{"type":"predicate","probability":0.3}]}`)
	for i, want := range []float64{0.1, 0.2, 0.3} {
		if a := resp.Answer(&req.Questions[i], i); a == nil || a.Noul.V != want {
			t.Errorf("question %d: %+v", i, a)
		}
	}
	if a := resp.Answer(&Question{ID: "other"}, 1); a != nil {
		t.Errorf("an answer of another name was taken: %+v", a)
	}
}

func TestCheckHoldsAnswersToQuestions(t *testing.T) {
	req := mustRequest(t, `{"state":"x","questions":{"c":{"type":"choice","criteria":{"a":null,"b":null}},"n":{"type":"noul"},"s":{"type":"score","criteria":["l","h"]},"x":{"type":"box"}}}`)
	for body, want := range map[string]string{
		`"c":{"type":"choice","choice":"a","probabilities":{"a":0.93,"b":0.06}}`: "",
		`"c":{"type":"choice","choice":"z"}`:                                     "not among the options",
		`"c":{"type":"choice"}`:                                                  "no choice",
		`"c":{"type":"noul","noul":0.5}`:                                         "got an answer of type",
		`"c":{"type":"refusal"}`:                                                 "",
		`"c":{"type":"choice","choice":"a","probabilities":{"a":1.5}}`:           "not in [0,1]",
		`"n":{"type":"noul","noul":1}`:                                           "",
		`"n":{"type":"noul","noul":-0.1}`:                                        "no probability",
		`"n":{"type":"noul","noul":"0.5"}`:                                       "no probability",
		`"s":{"type":"score","score":1.4}`:                                       "",
		`"s":{"type":"score"}`:                                                   "no score",
		`"x":{"type":"box","box":[]}`:                                            "",
		`"x":{"type":"circle"}`:                                                  "got an answer of type",
	} {
		resp := mustResponse(t, `{"answers":{`+body+`}}`)
		var err error
		for i := range req.Questions {
			if a := resp.Answer(&req.Questions[i], i); a != nil {
				err = a.Check(&req.Questions[i])
			}
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v (want %q)", body, err, want)
		}
	}
}

func TestLevelOfAScore(t *testing.T) {
	for body, want := range map[string]string{
		`"probabilities":{"2":0.4,"0":0.4,"1":0.2}`: "0", // a tie goes to the lower level, whatever the order
		`"probabilities":{"10":0.4,"9":0.4}`:        "9",
		`"score":1.6`:                               "2",
		`"score":0.4`:                               "0",
		`"score":0.4,"probabilities":{}`:            "0",
	} {
		r := mustResponse(t, `{"answers":{"s":{"type":"score",`+body+`}}}`)
		if got, ok := r.Answers[0].Level(); !ok || got != want {
			t.Errorf("%s: %s %v", body, got, ok)
		}
	}
}

func TestRefusedResponses(t *testing.T) {
	for _, body := range []string{``, `{}`, `{"answers":7}`, `{"answers":{"a":{},"a":{}}}`, `{"answers":{"q":{"type":"noul","noul":NaN}}}`,
		`{"answers":{"q":{"type":"noul","noul":0.5}}`, `{"success":true,"result":null,"errors":[]}`, `<html>502</html>`,
		`{"answers":{"q":{"type":"choice","choice":"a","probabilities":{"a":0.5,"a":0.5}}}}`, `{"answers":{"q":[]}}`} {
		if r, err := ParseResponse([]byte(body), Limits{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v, %v", body, r, err)
		}
	}
}

func TestConfidenceFormulas(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	third := []float64{1. / 3, 1. / 3, 1. / 3}
	for _, def := range []Definition{DefinitionNormalized, DefinitionEntropy, DefinitionScore} {
		if got := Confidence(def, []float64{0, 1, 0}); !near(got, 1) {
			t.Errorf("%s of a certain answer: %v", def, got)
		}
		if got := Confidence(def, []float64{1}); got != 1 {
			t.Errorf("%s of a single option: %v", def, got)
		}
	}
	for _, c := range []struct {
		def   Definition
		probs []float64
		want  float64
	}{
		{DefinitionPeak, []float64{0.2, 0.7, 0.1}, 0.7},
		{DefinitionNormalized, third, 0},
		{DefinitionNormalized, []float64{0.75, 0.25}, 0.5},
		{DefinitionEntropy, third, 0},
		{DefinitionEntropy, []float64{0.5, 0.5, 0, 0}, 0.5},
		// Levels 0..2, mode 0: spread 0.35*1+0.05*2 = 0.45 against 2/3 of uniform.
		{DefinitionScore, []float64{0.6, 0.35, 0.05}, 1 - 0.45/(2./3)},
		{DefinitionScore, []float64{0.5, 0, 0, 0.5}, 0},
	} {
		if got := Confidence(c.def, c.probs); !near(got, c.want) {
			t.Errorf("%s of %v: %v, want %v", c.def, c.probs, got, c.want)
		}
	}
	for _, got := range []float64{Confidence(DefinitionGiven, third), Confidence("", third), Confidence(DefinitionPeak, nil)} {
		if !math.IsNaN(got) {
			t.Errorf("%v where there is no formula", got)
		}
	}
}

func TestRoundingAndTolerance(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want int
	}{{[]float64{0.93, 0.07}, 2}, {[]float64{0.9299999999999999, 0.07}, 2}, {[]float64{0.879, 0.0448}, 4}, {[]float64{1, 0}, 0}, {[]float64{1. / 3}, 9}, {nil, 0}} {
		if got := Decimals(c.xs); got != c.want {
			t.Errorf("%v: %d decimals, want %d", c.xs, got, c.want)
		}
	}
	// 250 options of 0.004 each round to 0.00: a sum of 0 is within half a digit each.
	if tol := SumTolerance(250, 2); tol < 1 {
		t.Errorf("250 options of two decimals: %v", tol)
	}
	if tol := SumTolerance(3, 2); tol < 0.015 || tol > 0.016 {
		t.Errorf("three options: %v", tol)
	}
	if tol := SumTolerance(4, 4); tol < 0.02 || tol > 0.021 {
		t.Errorf("four decimals: %v", tol)
	}
}

func TestStripEchoesTakesEveryEcho(t *testing.T) {
	for body, want := range map[string]string{
		`{"detail":[{"input":"sesame","msg":"got sesame"}]}`:                             `{"detail":[{"input":null,"msg":null}]}`,
		`{"detail":[{"msg":"got s\u0065same","input":["x",{"y":"sesame"}]}]}`:            `{"detail":[{"msg":null,"input":null}]}`,
		` {"a" : {"input" : {"input" : 1} , "ctx":{"given":"v"}}, "msg":"not a string"}`: ` {"a" : {"input" : null , "ctx":null}, "msg":"not a string"}`,
		`{"input":null,"msg":"x"}`: `{"input":null,"msg":"x"}`,
		`[{"input":1,"input":2}]`:  `[{"input":null,"input":null}]`,
	} {
		got, _, err := StripEchoes([]byte(body), Limits{})
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", body, got, err, want)
		}
	}
	for _, body := range []string{`{"input":"a`, `<p>input`, "{\"input\":\"\xff\"}"} {
		if got, _, err := StripEchoes([]byte(body), Limits{}); err == nil {
			t.Errorf("%q became %q", body, got)
		}
	}
}

func TestCost(t *testing.T) {
	for text, want := range map[string]int64{"0.00000042": 420, "1e-9": 1, "0": 0, "2.5": 2500000000} {
		if got := ParseCost(text); !got.Set || got.V != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, text := range []string{"", "free", "-1", "NaN", "1e300"} {
		if got := ParseCost(text); got.Set {
			t.Errorf("%q: %v", text, got)
		}
	}
}
