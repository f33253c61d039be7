package arrowfile

import "strings"

// Dictionaries returns the labels of the columns that have a dictionary, by column name, as
// Options.Seed takes them.
func (f *File) Dictionaries() map[string][]string {
	out := map[string][]string{}
	var add func(shapes []*shape)
	add = func(shapes []*shape) {
		for _, s := range shapes {
			if labels, ok := f.dicts[s.dict]; ok && s.dict != noDict {
				for _, l := range labels {
					out[s.name] = append(out[s.name], strings.Clone(l))
				}
			}
			add(s.children)
		}
	}
	add(f.shapes)
	return out
}
