package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/scoring"
)

func htmlOf(t testing.TB, card *scoring.Scorecard) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, card, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// outline is what a test needs to know of a page, read by an XML decoder in its HTML mode:
// elements that were opened, with their attributes, and the text of tables.
type outline struct {
	elements map[string]int
	attrs    []xml.Attr
	ids      map[string]int
	text     strings.Builder
	data     string
}

// parse reads a page. The script element is cut out first, as a browser would end it.
func parse(t testing.TB, doc string) *outline {
	t.Helper()
	open := `<script type="application/json" id="scorecard">`
	before, rest, ok := strings.Cut(doc, open)
	if !ok {
		t.Fatal("no data in the page")
	}
	data, after, ok := strings.Cut(rest, "</script>")
	if !ok {
		t.Fatal("the data does not end")
	}
	style := regexp.MustCompile(`(?s)<style>.*?</style>`)
	o := &outline{elements: map[string]int{}, ids: map[string]int{}, data: data}
	dec := xml.NewDecoder(strings.NewReader(style.ReplaceAllString(before, "") + after))
	dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		o.see(tok)
	}
}

func (o *outline) see(tok xml.Token) {
	switch x := tok.(type) {
	case xml.StartElement:
		o.elements[x.Name.Local]++
		o.attrs = append(o.attrs, x.Attr...)
		for _, a := range x.Attr {
			if a.Name.Local == "id" {
				o.ids[a.Value]++
			}
		}
	case xml.CharData:
		o.text.Write(x)
	}
}

// No name, reason or warning becomes an element or attribute, and nothing points outside.
func TestHTMLIsSafe(t *testing.T) {
	for name, card := range cards() {
		t.Run(name, func(t *testing.T) {
			doc := htmlOf(t, card)
			o := parse(t, doc)
			for _, bad := range []string{"script", "img", "b", "iframe", "object", "base", "form"} {
				if n := o.elements[bad]; n != 0 {
					t.Errorf("%d elements %s", n, bad)
				}
			}
			for _, a := range o.attrs {
				switch n := a.Name.Local; {
				case strings.HasPrefix(n, "on"), n == "src", n == "style", n == "srcset", n == "action":
					t.Errorf("attribute %s=%q", n, a.Value)
				case n == "href" && !strings.HasPrefix(a.Value, "#") && a.Value != "data:,":
					t.Errorf("link to %q", a.Value)
				}
			}
			for _, bad := range []string{"url(", "@import", "http://", "https://"} {
				if style := doc[:strings.Index(doc, "</style>")]; strings.Contains(style, bad) {
					t.Errorf("the head has %q", bad)
				}
			}
			if strings.Contains(o.data, "<") || strings.Contains(o.data, "-->") {
				t.Error("the data could end its element")
			}
		})
	}
}

// Hostile names are there to read, all of them.
func TestHTMLShowsNames(t *testing.T) {
	card := hostileCard()
	text := parse(t, htmlOf(t, card)).text.String()
	for i := range card.Backends {
		if name := clean(card.Backends[i].Name); !strings.Contains(text, name) {
			t.Errorf("%q is not in the page", name)
		}
	}
	for _, w := range card.Warnings {
		if w.Text != "" && !strings.Contains(text, clean(w.Text)) {
			t.Errorf("warning %q is not in the page", w.Text)
		}
	}
}

func TestHTMLStructure(t *testing.T) {
	for name, card := range cards() {
		t.Run(name, func(t *testing.T) {
			o := parse(t, htmlOf(t, card))
			for id, n := range o.ids {
				if n > 1 {
					t.Errorf("id %q stands %d times", id, n)
				}
			}
			for _, a := range o.attrs {
				switch a.Name.Local {
				case "href":
					if id, ok := strings.CutPrefix(a.Value, "#"); ok && o.ids[id] == 0 {
						t.Errorf("link to nowhere: %s", a.Value)
					}
				case "aria-labelledby":
					for _, id := range strings.Fields(a.Value) {
						if o.ids[id] == 0 {
							t.Errorf("label %q is nowhere", id)
						}
					}
				}
			}
			if e := o.elements; e["table"] == 0 || e["table"] != e["caption"] || e["main"] != 1 || e["h1"] != 1 {
				t.Errorf("elements %v", e)
			}
			for _, bad := range []string{"NaN", "+Inf", "%!", "<nil>"} {
				if strings.Contains(o.text.String(), bad) {
					t.Errorf("the page says %q", bad)
				}
			}
		})
	}
}

// Every chart of the demo: 6 of bars and 1 of latency for the run, 2 a scenario, and a
// matrix a backend and scenario.
func TestHTMLHasCharts(t *testing.T) {
	doc := htmlOf(t, demoCard())
	if n := strings.Count(doc, `role="img"`); n != 5+1+3*2 {
		t.Errorf("%d charts", n)
	}
	if n := strings.Count(doc, `class="matrix"`); n != 15 {
		t.Errorf("%d matrices", n)
	}
	if doc := htmlOf(t, emptyCard()); strings.Contains(doc, `role="img"`) || strings.Contains(doc, `class="matrix"`) {
		t.Error("charts of nothing")
	}
}

// The numbers in the page's tables are those of the text report.
func TestHTMLSaysTheSame(t *testing.T) {
	card := demoCard()
	text := parse(t, htmlOf(t, card)).text.String()
	p := layOut(card, Options{})
	for _, s := range p.sections {
		for _, row := range s.rows {
			for _, c := range row {
				if !strings.Contains(text, c.text) || !strings.Contains(text, c.sub) {
					t.Errorf("%s: %q %q is not in the page", s.title, c.text, c.sub)
				}
			}
		}
	}
}

// The page is also data: what it carries is the scorecard.
func TestHTMLCarriesData(t *testing.T) {
	for name, card := range cards() {
		got, err := ReadJSON(strings.NewReader(parse(t, htmlOf(t, card)).data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(filled(card), got, sameBits); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// checkInBrowser runs testdata/browser/check.mjs, or skips the test where its tools are
// not installed.
func checkInBrowser(t *testing.T) func(files ...string) (said string, err error) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	browser := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("Chromium is not installed")
	}
	dir := filepath.Join("testdata", "browser")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "playwright-core")); err != nil {
		t.Skip("run npm ci in reports/testdata/browser first")
	}
	return func(files ...string) (string, error) {
		cmd := exec.Command(node, append([]string{"check.mjs"}, files...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHROMIUM="+browser)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
}

// The reports in Chromium: offline, accessible, no wider than the screen.
func TestHTMLInBrowser(t *testing.T) {
	check := checkInBrowser(t)
	var files []string
	for name, card := range map[string]*scoring.Scorecard{"demo": demoCard(), "hostile": hostileCard()} {
		file := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(file, []byte(htmlOf(t, card)), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if said, err := check(files...); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// The check can fail.
func TestBrowserCheckFails(t *testing.T) {
	check := checkInBrowser(t)
	broken := filepath.Join(t.TempDir(), "broken.html")
	if err := os.WriteFile(broken, []byte(`<title>x</title><img src="https://example.invalid/x.png"><div style="width:2000px">wide</div>`), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := check(broken)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("a broken page: %v\n%s", err, said)
	}
	for _, want := range []string{"requests https://example.invalid/x.png", "scrolls sideways", "axe image-alt", "no content security policy"} {
		if !strings.Contains(said, want) {
			t.Errorf("the check does not say %q:\n%s", want, said)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	card := demoCard()
	for b.Loop() {
		if err := HTML(io.Discard, card, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	card := demoCard()
	for b.Loop() {
		if err := Text(io.Discard, card, Options{Width: 80}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadJSON(b *testing.B) {
	text := mustJSON(b, demoCard())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ReadJSON(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
