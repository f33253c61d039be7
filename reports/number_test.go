package reports

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestNumberFormats(t *testing.T) {
	inf, notANumber := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		name string
		f    func(float64) string
		in   float64
		want string
	}{
		{"score", score, 71.25, "71.2"}, {"score", score, 99.96, "100.0"}, {"score", score, 0, "0.0"}, {"score", score, -0.04, "0.0"},
		{"score", score, -3.14, "-3.1"}, {"score", score, notANumber, "NA"}, {"score", score, inf, "NA"},
		{"share", share, 0.8731, "87.3%"}, {"share", share, 1, "100.0%"}, {"share", share, notANumber, "NA"},
		{"signed", signed(score), 3.14, "+3.1"}, {"signed", signed(score), -3.14, "-3.1"}, {"signed", signed(score), 0, "0.0"}, {"signed", signed(score), notANumber, "NA"},
		{"p", pValue, 0.0004, "<0.001"}, {"p", pValue, 0, "<0.001"}, {"p", pValue, 0.001, "0.001"}, {"p", pValue, 0.034, "0.034"},
		{"p", pValue, 0.9996, ">0.999"}, {"p", pValue, 1, "1.000"}, {"p", pValue, notANumber, "NA"},
		{"latency", latency, 0, "0 ns"}, {"latency", latency, 0.214, "0.214 ns"}, {"latency", latency, 7, "7.00 ns"}, {"latency", latency, 212, "212 ns"},
		{"latency", latency, 999.4, "999 ns"}, {"latency", latency, 999.6, "1.00 µs"}, {"latency", latency, 1250, "1.25 µs"}, {"latency", latency, 12_345, "12.3 µs"},
		{"latency", latency, 999_600, "1.00 ms"}, {"latency", latency, 168_000, "168 µs"}, {"latency", latency, 1e9, "1.00 s"}, {"latency", latency, 12_345e9, "12,300 s"},
		{"latency", latency, -1, "NA"}, {"latency", latency, notANumber, "NA"}, {"latency", latency, inf, "NA"},
		{"money", money, 0, "0"}, {"money", money, 0.00021, "0.000210"}, {"money", money, 1.5, "1.50"}, {"money", money, 12345, "12,300"},
		{"money", money, 9.996, "10.0"}, {"money", money, 1e-12, "1.00e-12"}, {"money", money, 7.17e-9, "7.17e-09"}, {"money", money, notANumber, "NA"},
	} {
		if got := tt.f(tt.in); got != tt.want {
			t.Errorf("%s(%v) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1000: "-1,000", -999: "-999", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := count(in); got != want {
			t.Errorf("count(%d) = %q, want %q", in, got, want)
		}
	}
	if got := count(uint64(math.MaxUint64)); got != "18,446,744,073,709,551,615" {
		t.Error(got)
	}
	if plural(1, "decision") != "1 decision" || plural(2000, "decision") != "2,000 decisions" || plural(0, "pair") != "0 pairs" {
		t.Error("plural")
	}
}

// What is printed with three significant digits is within half a unit of the third.
func TestSignificantIsClose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v := math.Pow(10, -8+20*r.Float64())
		s := significant(v)
		back, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err != nil {
			t.Fatalf("significant(%v) = %q", v, s)
		}
		if unit := math.Pow(10, math.Floor(math.Log10(v))-2); math.Abs(back-v) > 0.5001*unit {
			t.Fatalf("significant(%v) = %q, off by %v", v, s, back-v)
		}
		if strings.ContainsAny(s, "eE") {
			t.Fatalf("significant(%v) = %q has an exponent", v, s)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                "plain",
		" a\nb\tc\r ":          "a b c",
		"\x1b[2Jx":             `\x1b[2Jx`,
		"a\u202eb":             `a\u202eb`,
		"zero\u200bwidth":      `zero\u200bwidth`,
		"bad\xffutf8":          "bad\ufffdutf8",
		"👩\u200d👧 is a family": "👩\u200d👧 is a family",
		"日本語":                  "日本語",
		"\u2028":               `\u2028`,
		"nul\x00":              `nul\x00`,
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMarkdownEscape(t *testing.T) {
	for in, want := range map[string]string{
		"edge_routing_v2": "edge_routing_v2", "_em_": `\_em\_`, "a*b": `a\*b`, "`x`": "\\`x\\`", "<b>": "&lt;b>", "a & b": "a &amp; b",
		"[click](javascript:x)": `[click\](javascript:x)`, "[a][b]": `[a\][b]`, "71.3 [69.8, 72.9]": "71.3 [69.8, 72.9]", "~~x~~": `\~\~x\~\~`,
		"# head": `\# head`, "- item": `\- item`, "-": "-", "-0.3": "-0.3", "a|b": `a\|b`, `\`: `\\`,
	} {
		if got := markdown(in); got != want {
			t.Errorf("markdown(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseFormat(t *testing.T) {
	for in, want := range map[string]Format{
		"text": FormatText, "TXT": FormatText, "markdown": FormatMarkdown, "md": FormatMarkdown, ".md": FormatMarkdown, "html": FormatHTML,
		"out/report.html": FormatHTML, "report.htm": FormatHTML, "a.b/report.json": FormatJSON, "json": FormatJSON,
	} {
		if got, err := ParseFormat(in); got != want || err != nil {
			t.Errorf("ParseFormat(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "pdf", "report", "report.", "report.json.gz"} {
		if got, err := ParseFormat(in); err == nil {
			t.Errorf("ParseFormat(%q) = %q", in, got)
		} else if !strings.Contains(err.Error(), "text markdown html json") {
			t.Errorf("error %q does not list the formats", err)
		}
	}
}
