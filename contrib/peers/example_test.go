package peers_test

import (
	"fmt"
	"os"

	"github.com/clefbench/clefbench/contrib/peers"
)

func Example() {
	rows := peers.NewTraffic(1).Rows(65_536)
	report, err := peers.Encode(rows, 9)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	if _, err := report.WriteTo(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
