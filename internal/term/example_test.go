package term_test

import (
	"fmt"
	"os"

	"github.com/clefbench/clefbench/internal/term"
)

// A pipe is no terminal, but may be told to have colours.
func ExampleDetect() {
	env := func(name string) (string, bool) {
		if name == "CLICOLOR_FORCE" {
			return "1", true
		}
		return "", false
	}
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	defer w.Close()
	fmt.Printf("%+v\n", term.Detect(w, env))
	// Output: {Terminal:false Width:0 Color:true}
}

// Progress is silent where nobody reads along.
func ExampleStartProgress() {
	p := term.StartProgress(os.Stdout, term.ProgressOptions{
		Label: "replay", Unit: "decisions", Total: 3, Info: term.Detect(os.Stdout, os.LookupEnv),
	})
	defer p.Stop()
	for range 3 {
		p.Add(1)
	}
	// Output:
}
