package checkpoint_test

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// The recorder signs how far it has come; later anyone with the public key can tell.
func Example() {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := checkpoint.Checkpoint{Origin: "edge-1", Time: time.Unix(1_700_000_000, 0),
		Heads: []checkpoint.Head{{Segment: "edge-1-00000003", Digest: strings.Repeat("ab", 32), Length: 3}}}
	note, err := c.Sign(private)
	if err != nil {
		fmt.Println(err)
		return
	}
	read, err := checkpoint.Open(note, public)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Origin, read.Time.Format(time.DateOnly), read.Heads[0].Segment, read.Heads[0].Length)
	// Output: edge-1 2023-11-14 edge-1-00000003 3
}
