package datasets

import (
	"slices"
	"strings"

	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// origins returns the different values of a field of the segments' metadata, sorted;
// a value may be a list joined by commas. Segments that do not say are left out.
func origins(segments []segment, of func(*arrowfile.Meta) string) []string {
	var out []string
	for i := range segments {
		for _, v := range strings.Split(of(&segments[i].meta), ",") {
			if at, found := slices.BinarySearch(out, v); !found && v != "" {
				out = slices.Insert(out, at, v)
			}
		}
	}
	return out
}

func entityKeyOf(m *arrowfile.Meta) string { return m.EntityKeyID }
func redactionOf(m *arrowfile.Meta) string { return m.Redaction }

// keysText says what several keys mean for whoever counts entities.
func keysText(keys []string) string {
	return "entities are hashed under " + strings.Join(keys, " and ") +
		": the same entity has another hash under each key, and counts as another cluster"
}

// originOptions carries what segments say of themselves over into one that holds their rows.
func originOptions(segments []segment, o arrowfile.Options) arrowfile.Options {
	o.EntityKeyID = strings.Join(origins(segments, entityKeyOf), ",")
	o.Redaction = strings.Join(origins(segments, redactionOf), ",")
	if lists := origins(segments, func(m *arrowfile.Meta) string { return m.CaptureList }); len(lists) == 1 {
		o.CaptureDigest = lists[0]
	}
	return o
}
