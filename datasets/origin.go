package datasets

import (
	"cmp"
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

// entityKeys returns the ids of the keys under which entities of the segments are hashed.
// Only where there are several does it look whether there are entities at all.
func entityKeys(segments []segment) []string {
	keys := origins(segments, entityKeyOf)
	if len(keys) < 2 {
		return keys
	}
	var used []segment
	for i := range segments {
		if segments[i].hasEntities() {
			used = append(used, segments[i])
		}
	}
	return origins(used, entityKeyOf)
}

// hasEntities looks for the first entity; a segment that cannot be read may have some.
func (s *segment) hasEntities() bool {
	found := false
	err := visit(s.path, arrowfile.KindSnapshot, func(f *arrowfile.File) error {
		for row, err := range f.Snapshots("entity") {
			if err != nil {
				return err
			}
			if row.Entity.Set {
				found = true
				break
			}
		}
		return nil
	})
	return found || err != nil
}

// keysText says what several keys mean for whoever counts entities.
func keysText(keys []string) string {
	return "entities are hashed under " + strings.Join(keys, " and ") +
		": the same entity has another hash under each key, and counts as another cluster"
}

// originOptions carries what segments say of themselves over into one that holds their rows.
func originOptions(segments []segment, o arrowfile.Options) arrowfile.Options {
	o.EntityKeyID = strings.Join(entityKeys(segments), ",")
	o.Redaction = strings.Join(origins(segments, redactionOf), ",")
	if lists := origins(segments, func(m *arrowfile.Meta) string { return m.CaptureList }); len(lists) == 1 {
		o.CaptureDigest = lists[0]
	}
	o.Sampling = samplingOf(segments)
	return o
}

// samplingOf returns the samplings that the segments were recorded under, joined by "or"
// where they differ; "all" is that of a segment which says nothing, "" where none does.
func samplingOf(segments []segment) string {
	var out []string
	for i := range segments {
		s := cmp.Or(segments[i].meta.Sampling, "all")
		for part := range strings.SplitSeq(s, " or ") {
			if !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	slices.Sort(out)
	if len(out) == 1 && out[0] == "all" {
		return ""
	}
	return strings.Join(out, " or ")
}
