package secret

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPairsOfNameAndValue(t *testing.T) {
	for _, want := range []string{
		`{"name":"Authorization","value":"«Bearer x»"}`, `{"value":"«Bearer x»","name":"Authorization"}`, `{ "Name" : "x-api-key" , "Value" : "«k»" }`,
		`{"headers":[{"name":"Host","value":"h"},{"name":"Cookie","value":"«a=b»"},{"name":"accept","value":"x"}]}`,
		`{"key":"password","value":"«hunter2»","type":"text"}`, `{"value":"«hunter2»","n":-1.5e3,"t":true,"z":null,"s":"a\"b","key":"password"}`,
		`{"header":"x-api-key","value":"«v»"}`, `{"k":"client_secret","v":"«v»"}`, `{"param":"token","val":"«v»"}`, `{"name":"DB_PASSWORD","value":"«p»","name2":""}`,
		`{"a":{"b":[{"value":"«x»","name":"pass\u0077ord"}]}}`[:0] + `{"a":{"b":[{"value":"«x»","name":"password"}]}}`,
		`{"name":"Authorization","values":["«x»","«y»"]}`, `{"key":"password","value":{"stringValue":"«x»"}}`, `{"name":"pass\u0077ord","value":"«\u0078»"}`,
		`{"name":"password","value":«1234567»}`, `{"name":"ada","key":"token","value":"«x»"}`, `{"name":"sid","value":"«38afes7a8bcd»"}`,
		`["authorization","«Bearer x»"]`, `[["host","h"],["authorization","«zX81kk02qq»"],["x-api-key","«hunter2»"],["cookie","«a=b»"]]`, `["Host","h","Authorization","«Basic eA==»","Accept","*"]`,
		`{"p":["password","«zX81kk02qq»"]}`,
		`{"text":"{\"name\":\"x-api-key\",\"value\":\"«hunter2»\"}"}`, `"- name: DB_PASSWORD\n  value: «hunter2»\n"`,
		// Other things of that form.
		`{"name":"Reset password","value":"https://h/x"}`, `{"name":"ada","value":"x"}`, `{"name":"token_count","value":"5"}`, `{"name":"total_token","value":5123456789}`, `{"name":"password","value":120}`,
		`{"name":"password","label":"Password","type":"password"}`, `{"required":["username","password","email"]}`, `["password","token"]`, `{"loc":["body","password",0]}`, `[["password","required|min:8"],["token","string"]]`,
		`{"name":"get_token","content":"the text"}`, `{"name":"password","value":""}`, `{"name":"password","value":null}`, `{"key":"color","value":"red"}`, `{"value":"x","o":{"name":"password"}}`,
		`{"value":{"name":"x"},"key":"password2x"}`, `["authorization",{"a":1},"Bearer x"]`, `["cookie","chocolate"]`, `{"name":"session","value":"expired"}`, `[["token","2024-01-02"],["key","a1b2c3d4e5"]]`,
	} {
		in := unmark.Replace(want)
		if !json.Valid([]byte(in)) {
			t.Fatal(in)
		}
		var s Scanner
		got, found, _, err := s.Body([]byte(in), Whole)
		marks := strings.Count(want, "«")
		at, clean := 0, want
		for range marks {
			from := strings.Index(clean[at:], "«") + at
			to := strings.Index(clean, "»") + len("»")
			mark := Mark(Credential)
			if i := strings.Index(string(got[min(len(got), from):]), "]"); i >= 0 {
				mark = string(got[from:][:i+1]) // the kind is tested elsewhere
			}
			if strings.HasPrefix(mark, `"`) {
				mark += `"`
			}
			clean = clean[:from] + mark + clean[to:]
			at = from
		}
		if err != nil || string(got) != clean || len(found) != marks || !json.Valid(got) {
			t.Errorf("%s\nwant %s %v %v", got, want, found, err)
		}
		if again, found, _, _ := s.Body(got, Whole); len(found) > 0 {
			t.Errorf("replaced again: %s", again)
		}
	}
}

// Looking ahead costs each object's own length once, however they are nested.
func TestLookingAheadIsLinear(t *testing.T) {
	for _, unit := range []string{`{"value":1},`, `{"value":"","value":"","v":1},`, `"value":"x",`, `{"value":"xxxxxxxxxxxxxxxx","a":"b","a":"b"},`} {
		for _, n := range []int{1 << 12, 1 << 17} {
			in := `[{"value":1,` + strings.Repeat(unit, n/len(unit)) + `"z":1}]`
			if strings.HasPrefix(unit, "{") {
				in = "[" + strings.Repeat(unit, n/len(unit)) + "{}]"
			}
			var s Scanner
			if _, _, _, err := s.Body([]byte(in), Whole); err != nil || s.work > len(in) {
				t.Errorf("%.20s: %d bytes looked at for %d: %v", in, s.work, len(in), err)
			}
		}
	}
	nested := strings.Repeat(`{"value":"x","a":"b","c":`, maxDepth-1) + "1" + strings.Repeat("}", maxDepth-1)
	var s Scanner
	if _, _, _, err := s.Body([]byte(nested), Whole); err != nil || s.work > len(nested) {
		t.Errorf("nested: %d bytes for %d: %v", s.work, len(nested), err)
	}
}
