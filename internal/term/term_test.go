package term

import (
	"bytes"
	"os"
	"testing"
)

func env(pairs ...string) LookupEnv {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct {
		name    string
		tty     bool
		columns int
		env     LookupEnv
		want    Info
	}{
		{"terminal", true, 120, env("TERM", "xterm"), Info{Terminal: true, Width: 120, Color: true}},
		{"pipe", false, 0, env("TERM", "xterm"), Info{}},
		{"size unknown", true, 0, env(), Info{Terminal: true, Width: DefaultWidth, Color: true}},
		{"COLUMNS", true, 120, env("COLUMNS", "99"), Info{Terminal: true, Width: 99, Color: true}},
		{"COLUMNS is no number", true, 120, env("COLUMNS", "wide"), Info{Terminal: true, Width: 120, Color: true}},
		{"COLUMNS below one", true, 120, env("COLUMNS", "-3"), Info{Terminal: true, Width: 120, Color: true}},
		{"COLUMNS in a pipe", false, 0, env("COLUMNS", "99"), Info{}},
		{"NO_COLOR", true, 80, env("NO_COLOR", "1"), Info{Terminal: true, Width: 80}},
		{"NO_COLOR is empty", true, 80, env("NO_COLOR", ""), Info{Terminal: true, Width: 80, Color: true}},
		{"NO_COLOR wins", true, 80, env("NO_COLOR", "1", "CLICOLOR_FORCE", "1"), Info{Terminal: true, Width: 80}},
		{"forced in a pipe", false, 0, env("CLICOLOR_FORCE", "1"), Info{Color: true}},
		{"forced by 0", false, 0, env("CLICOLOR_FORCE", "0"), Info{}},
		{"dumb", true, 80, env("TERM", "dumb"), Info{Width: 80}},
		{"dumb but forced", true, 80, env("TERM", "dumb", "CLICOLOR_FORCE", "1"), Info{Width: 80, Color: true}},
		{"CLICOLOR=0", true, 80, env("CLICOLOR", "0"), Info{Terminal: true, Width: 80}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := detect(tt.tty, tt.columns, tt.env); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Neither a buffer nor a regular file is a terminal.
func TestDetectWriters(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := Detect(f, nil); got != (Info{}) {
		t.Errorf("file: %+v", got)
	}
	if got := Detect(&bytes.Buffer{}, env("TERM", "xterm")); got != (Info{}) {
		t.Errorf("buffer: %+v", got)
	}
}
