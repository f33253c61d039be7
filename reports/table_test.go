package reports

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

func text(t testing.TB, table *Table) string {
	t.Helper()
	var b bytes.Buffer
	if err := table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func mdown(t testing.TB, table *Table) string {
	t.Helper()
	var b bytes.Buffer
	if err := table.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

// Each of these is something that tablewriter 1.1.5 does to a table and we do not want.
func TestTableTraps(t *testing.T) {
	for _, tt := range []struct {
		name     string
		table    Table
		text, md string
	}{
		{
			"headers are not rewritten",
			Table{Header: []string{"p95_ms", "clef-flash", "Total /100"}, Rows: [][]string{{"a", "b", "c"}}},
			lines(" p95_ms  clef-flash  Total /100", strings.Repeat("─", 32), " a       b           c"),
			lines("| p95_ms | clef-flash | Total /100 |", "|:-------|:-----------|:-----------|", "| a      | b          | c          |"),
		},
		{
			"pipes",
			Table{Header: []string{"a|b"}, Rows: [][]string{{"x|y"}, {`done \| it`}, {`\\|`}}},
			lines(" a|b", strings.Repeat("─", 12), " x|y", ` done \| it`, ` \\|`),
			lines(`| a\|b       |`, `|:-----------|`, `| x\|y       |`, `| done \| it |`, `| \\\|       |`),
		},
		{
			"line breaks",
			Table{Header: []string{"name", "n"}, Align: []Align{AlignLeft, AlignRight}, Rows: [][]string{{"one\ntwo", "1"}, {"a\r\nb", "2"}}},
			lines(" name  n", "─────────", " one   1", " two", " a     2", " b"),
			lines("| name       | n |", "|:-----------|--:|", "| one<br>two | 1 |", "| a<br>b     | 2 |"),
		},
		{
			"leading blanks stay, trailing ones go",
			Table{Header: []string{"term", "x"}, Rows: [][]string{{"  indented  ", ""}, {"plain", "v"}}},
			lines(" term        x", "───────────────", "   indented", " plain       v"),
			lines("| term         | x |", "|:-------------|:--|", "|   indented   |   |", "| plain        | v |"),
		},
		{
			"empty columns and cells stay",
			Table{Header: []string{"a", "empty", "c"}, Rows: [][]string{{"1", "", "3"}, {"4"}}},
			lines(" a  empty  c", "─────────────", " 1         3", " 4"),
			lines("| a | empty | c |", "|:--|:------|:--|", "| 1 |       | 3 |", "| 4 |       |   |"),
		},
		{
			"wide characters and colours",
			Table{Header: []string{"名前", "v"}, Align: []Align{AlignLeft, AlignRight}, Rows: [][]string{{"日本語", "1"}, {"\x1b[31mred\x1b[0m", "22"}}},
			lines(" 名前     v", "────────────", " 日本語   1", " \x1b[31mred\x1b[0m     22"),
			lines("| 名前   |  v |", "|:-------|---:|", "| 日本語 |  1 |", "| \x1b[31mred\x1b[0m    | 22 |"),
		},
		{
			"numbers keep their form",
			Table{Header: []string{"n"}, Align: []Align{AlignRight}, Rows: [][]string{{"1.10"}, {"1e3"}, {"007"}}},
			lines("    n", "──────", " 1.10", "  1e3", "  007"),
			lines("|    n |", "|-----:|", "| 1.10 |", "|  1e3 |", "|  007 |"),
		},
		{
			"footnotes",
			Table{Header: []string{"a"}, Rows: [][]string{{"x (1)"}}, Footnotes: []string{"(1) why"}},
			lines(" a", "───────", " x (1)", "(1) why"),
			lines("| a     |", "|:------|", "| x (1) |", "", "(1) why"),
		},
		{"no rows", Table{Header: []string{"a"}}, lines(" a"), lines("| a |", "|:--|")},
		{"nothing", Table{}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(t, &tt.table); got != tt.text {
				t.Errorf("text:\n%swant:\n%s", got, tt.text)
			}
			if got := mdown(t, &tt.table); got != tt.md {
				t.Errorf("markdown:\n%swant:\n%s", got, tt.md)
			}
		})
	}
}

// The rows are the caller's: they are neither kept nor changed.
func TestTableDoesNotAlias(t *testing.T) {
	row := []string{"first", "1"}
	table := &Table{Header: []string{"name", "n"}}
	for _, name := range []string{"first", "second"} {
		row[0] = name
		table.Rows = append(table.Rows, row)
	}
	// The caller's mistake shows as it is (the same slice twice), not as tablewriter's.
	if got := text(t, table); strings.Count(got, "second") != 2 {
		t.Errorf("got\n%s", got)
	}
	if table.Header[0] != "name" || row[0] != "second" {
		t.Error("the caller's slices were changed")
	}
	lead := &Table{Header: []string{"a"}, Rows: [][]string{{"  x"}}}
	text(t, lead)
	if lead.Rows[0][0] != "  x" {
		t.Errorf("the caller's cell became %q", lead.Rows[0][0])
	}
}

// The width of a character must not depend on the machine's locale.
func TestTableIgnoresLocale(t *testing.T) {
	t.Setenv("LC_ALL", "zh_CN.UTF-8")
	t.Setenv("RUNEWIDTH_EASTASIAN", "1")
	got := text(t, &Table{Header: []string{"µ±–", "b"}, Rows: [][]string{{"µ", "x"}}})
	if want := lines(" µ±–  b", "────────", " µ    x"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTableConcurrently(t *testing.T) {
	table := &Table{Header: []string{"a", "b"}, Rows: [][]string{{"日本", "1"}}}
	want := text(t, table)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var b bytes.Buffer
			if err := table.WriteText(&b); err != nil || b.String() != want {
				t.Errorf("got %q, %v", b.String(), err)
			}
		})
	}
	wg.Wait()
}

func TestWrapText(t *testing.T) {
	for _, tt := range []struct {
		s     string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"no limit at all", 0, "no limit at all"},
		{"", 5, ""},
		{"one two three", 7, "one two|three"},
		{"one two three", 8, "one two|three"},
		{"@cf/cloudflare/clef-flash", 15, "@cf/cloudflare/|clef-flash"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"日本語日本語", 5, "日本|語日|本語"},
		{"no difference shown", 13, "no difference|shown"},
	} {
		if got := strings.Join(wrapText(tt.s, tt.width), "|"); got != tt.want {
			t.Errorf("wrapText(%q, %d) = %q, want %q", tt.s, tt.width, got, tt.want)
		}
	}
}

// Breaking lines loses nothing but blanks, and keeps to the width.
func FuzzWrapText(f *testing.F) {
	f.Add("one two three", 5)
	f.Add("日本語 a-b/c", 3)
	f.Fuzz(func(t *testing.T, s string, width int) {
		s = clean(s)
		width = 2 + abs(width)%80
		got := wrapText(s, width)
		if a, b := strings.Join(strings.Fields(strings.Join(got, "")), ""), strings.Join(strings.Fields(s), ""); a != b {
			t.Fatalf("%q became %q", b, a)
		}
		for _, l := range got {
			if displayWidth(l) > width && len([]rune(l)) > 1 {
				t.Fatalf("%q is wider than %d", l, width)
			}
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func BenchmarkTable(b *testing.B) {
	table := &Table{Header: []string{"name", "n"}, Align: []Align{AlignLeft, AlignRight}}
	for range 100 {
		table.Rows = append(table.Rows, []string{"edge-routing", "71.3 [69.8, 72.9]"})
	}
	for b.Loop() {
		text(b, table)
	}
}
