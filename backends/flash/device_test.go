package flash

import (
	"encoding/csv"
	"os"
	"reflect"
	"testing"
)

// The user agents of 952 browsers, each with the device that its owner used.
func TestDeviceOfRealBrowsers(t *testing.T) {
	f, err := os.Open("../../../shared/data/bots/browser_fingerprints.csv")
	if err != nil {
		t.Skip("the browser data set is not beside this checkout")
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[Device]int{}
	for _, row := range rows[1:] {
		got := DeviceOf(row[0])
		if string(got) != row[4] {
			t.Errorf("%q is %q, want %q", row[0], got, row[4])
		}
		counts[got]++
	}
	if want := (map[Device]int{Mobile: 5611, Desktop: 4366, Tablet: 23}); !reflect.DeepEqual(counts, want) {
		t.Errorf("counts %v, want %v", counts, want)
	}
}

func TestDeviceOf(t *testing.T) {
	for ua, want := range map[string]Device{
		"": "", mac: Desktop, iphone: Mobile, ipad: Tablet, "curl/8.5.0": Desktop, "Googlebot/2.1": Desktop,
		"Mozilla/5.0 (Linux; Android 10; K) Chrome/138.0.0.0 Safari/537.36":        Tablet,
		"Mozilla/5.0 (Linux; Android 10; K) Chrome/138.0.0.0 Mobile Safari/537.36": Mobile,
		"Opera/9.80 (J2ME/MIDP; Opera Mobi/23.348)":                                Mobile,
		"Mozilla/5.0 (iPod touch; CPU iPhone OS 6_0)":                              Mobile,
		"Mozilla/5.0 (Tablet; rv:48.0) Gecko/48.0":                                 Tablet,
	} {
		if got := DeviceOf(ua); got != want {
			t.Errorf("DeviceOf(%q) = %q, want %q", ua, got, want)
		}
	}
}
