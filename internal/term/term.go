package term

import (
	"io"
	"strconv"

	"golang.org/x/term"
)

// DefaultWidth is the width of a terminal that does not tell its own.
const DefaultWidth = 80

// LookupEnv finds a variable of the environment, as os.LookupEnv does.
type LookupEnv func(name string) (value string, ok bool)

// Info is what a writer is connected to.
type Info struct {
	// Terminal says that a person reads along, on a terminal that can move its cursor.
	Terminal bool
	// Width is the number of columns, 0 where there is no terminal: no limit.
	Width int
	// Color says that colours are wanted.
	Color bool
}

// Detect looks at a writer and the environment.
//
// Colours: NO_COLOR (anything but empty) forbids them, then CLICOLOR_FORCE (anything but
// empty and 0) demands them, then TERM=dumb and CLICOLOR=0 forbid them; else a terminal has
// them. COLUMNS overrides the width of a terminal.
func Detect(w io.Writer, env LookupEnv) Info {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	tty, columns := size(w)
	return detect(tty, columns, env)
}

func detect(tty bool, columns int, env LookupEnv) Info {
	get := func(name string) string {
		v, _ := env(name)
		return v
	}
	dumb := get("TERM") == "dumb"
	info := Info{Terminal: tty && !dumb}
	switch force := get("CLICOLOR_FORCE"); {
	case get("NO_COLOR") != "":
	case force != "" && force != "0":
		info.Color = true
	case dumb || get("CLICOLOR") == "0":
	default:
		info.Color = tty
	}
	if !tty {
		return info
	}
	info.Width = columns
	if n, err := strconv.Atoi(get("COLUMNS")); err == nil && n > 0 {
		info.Width = n
	}
	if info.Width <= 0 {
		info.Width = DefaultWidth
	}
	return info
}

// size says whether a writer is a terminal, and how many columns it tells.
func size(w io.Writer) (tty bool, columns int) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns = 0
	}
	return true, columns
}
