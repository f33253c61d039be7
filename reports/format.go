package reports

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/clefbench/clefbench/scoring"
)

// ErrFormat reports a format that this package does not write.
var ErrFormat = errors.New("unknown report format")

// Options are the choices of print. The zero value is right for a file.
type Options struct {
	// Width is the number of columns to keep the text report within, as far as it can; 0 is
	// no limit.
	Width int
	// Color allows terminal colours in the text report.
	Color bool
	// Title replaces "clefbench report".
	Title string
	// Brief leaves out the tables that answer a second question: what stands beside the
	// score, counts, evidence, and pairs other than those of the run's totals.
	Brief bool
	// Generated is printed when it is set; the package reads no clock, so that the same
	// scorecard gives the same bytes.
	Generated time.Time
}

// Format is a kind of report.
type Format string

// The formats.
const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatHTML     Format = "html"
	FormatJSON     Format = "json"
)

// Formats lists the formats by name.
func Formats() []Format { return []Format{FormatText, FormatMarkdown, FormatHTML, FormatJSON} }

// ParseFormat finds a format by its name, or by the extension of a file name ("md",
// ".html", "out/report.json"); the error wraps [ErrFormat] and lists what there is.
func ParseFormat(name string) (Format, error) {
	key := strings.ToLower(name)
	if ext := path.Ext(key); ext != "" {
		key = ext[1:]
	}
	switch key {
	case "text", "txt":
		return FormatText, nil
	case "markdown", "md":
		return FormatMarkdown, nil
	case "html", "htm":
		return FormatHTML, nil
	case "json":
		return FormatJSON, nil
	}
	return "", fmt.Errorf("%w %q: use one of %v", ErrFormat, name, Formats())
}

// Write writes the scorecard in a format.
func Write(w io.Writer, f Format, card *scoring.Scorecard, o Options) error {
	switch f {
	case FormatText:
		return Text(w, card, o)
	case FormatMarkdown:
		return Markdown(w, card, o)
	case FormatHTML:
		return HTML(w, card, o)
	case FormatJSON:
		return JSON(w, card, o)
	}
	return fmt.Errorf("%w %q: use one of %v", ErrFormat, f, Formats())
}
