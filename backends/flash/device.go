package flash

import "strings"

// Device is what a user agent runs on. The empty Device is unknown.
type Device string

// The devices.
const (
	Desktop Device = "desktop"
	Mobile  Device = "mobile"
	Tablet  Device = "tablet"
)

// DeviceOf classifies a user agent by its tokens, in this order:
//
//  1. the empty text: unknown
//  2. iPad or Tablet, or Android without Mobile: tablet
//  3. Mobi (so also Mobile), iPhone, iPod or Android: mobile
//  4. everything else, crawlers and command-line clients too: desktop
//
// Case counts, as it does in the tokens that browsers send. iPads that ask for desktop
// sites send the user agent of a Mac, and count as desktop: the text does not tell them
// apart.
func DeviceOf(userAgent string) Device {
	android := strings.Contains(userAgent, "Android")
	switch {
	case userAgent == "":
		return ""
	case strings.Contains(userAgent, "iPad"), strings.Contains(userAgent, "Tablet"),
		android && !strings.Contains(userAgent, "Mobile"):
		return Tablet
	case android, strings.Contains(userAgent, "Mobi"), strings.Contains(userAgent, "iPhone"), strings.Contains(userAgent, "iPod"):
		return Mobile
	}
	return Desktop
}
