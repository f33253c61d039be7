package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The labels of a thinned-out data set are listed by the record of the retention, and
// verify holds them to it; the anchors are of all the data, and no finding.
func TestVerifyAfterRetention(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	done := retain(t, traffic(t, 300), out, policy())
	v, err := Verify(out)
	if err != nil {
		t.Fatal(err)
	}
	if v.Err() != nil || len(v.Findings) != 0 {
		t.Errorf("findings %+v", v.Findings)
	}
	for name := range done.Labels {
		if err := os.Remove(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	if v, err = Verify(out); err != nil {
		t.Fatal(err)
	}
	if v.Err() == nil || !strings.Contains(v.Err().Error(), RetentionName+" lists these labels, and they are not there") {
		t.Errorf("deleted labels: %v", v.Err())
	}
}
