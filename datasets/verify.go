package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// ArtefactDir is the directory of strategy files by content hash, inside a data set.
const ArtefactDir = "artefacts"

// Finding is something that [Verify] saw. A note does not make a data set unsound.
type Finding struct {
	Path string `json:"path"`
	Text string `json:"text"`
	Note bool   `json:"note"`
	// Err is what the finding rests on; nil where there is no error value.
	Err error `json:"-"`
}

// Verification is the result of [Verify].
type Verification struct {
	Path      string          `json:"path"`
	Segments  int             `json:"segments"`
	Labels    int             `json:"labels"`
	Artefacts int             `json:"artefacts"`
	Rows      int64           `json:"rows"`
	Ledger    snapshot.Ledger `json:"ledger"`
	Findings  []Finding       `json:"findings"`
	// Checkpoints counts those whose signature and heads hold; 0 when no key was given.
	Checkpoints int `json:"checkpoints"`

	// unread names the segments of which nothing can be said; each is a finding already.
	unread map[string]bool
	chain  *chain
}

// Err returns nil when everything was verified, else an error that wraps
// arrowfile.ErrCorrupt and names the first finding.
func (v *Verification) Err() error {
	n, first := 0, ""
	for _, f := range v.Findings {
		if f.Note {
			continue
		}
		if n++; n == 1 {
			first = f.Path + ": " + f.Text
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: %s", arrowfile.ErrCorrupt, first)
	}
	return fmt.Errorf("%w: %s, and %d more", arrowfile.ErrCorrupt, first, n-1)
}

func (v *Verification) add(path string, err error) {
	v.Findings = append(v.Findings, Finding{Path: path, Text: strings.TrimPrefix(err.Error(), path+": "), Err: err})
}

func (v *Verification) fault(path, format string, args ...any) {
	v.Findings = append(v.Findings, Finding{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (v *Verification) note(path, format string, args ...any) {
	v.Findings = append(v.Findings, Finding{Path: path, Text: fmt.Sprintf(format, args...), Note: true})
}

// Verify checks a data set's directory, or one file: every digest, every row, every
// ledger and that the ledgers sum up to what the recorder counted, that no segment is
// missing inside a boot, that each segment follows the one that it names with the digest
// that it names, that each label stands beside its decision, that each artefact
// has the content that its name says, and dataset.yaml: that the label files are those
// that it lists, and its anchors those of their labels. Findings are data; the error is
// for a path that cannot be looked at, and wraps [ErrEmpty] where there is nothing to
// verify.
func Verify(path string) (*Verification, error) { return verify(path, nil) }

func verify(path string, by *Signed) (*Verification, error) {
	v := &Verification{Path: path, unread: map[string]bool{}}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if by != nil {
			return nil, fmt.Errorf("%s: checkpoints are of directories, not of single files", path)
		}
		v.file(path)
		return v, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	segments := v.entries(path, entries)
	if v.Segments == 0 && len(v.Findings) == 0 {
		return nil, fmt.Errorf("%w: no segment in %s", ErrEmpty, path)
	}
	m, _, err := readManifest(path)
	if err != nil {
		v.add(filepath.Join(path, ManifestName), err)
		m = &Manifest{}
	}
	all := map[string]*scoring.Anchors{}
	counted := 0
	for i := range segments {
		if v.labels(&segments[i], m.Tasks, all) {
			counted++
		}
	}
	// Anchors rest on every label: what could not be read was reported.
	if v.listed(path, m, entries) && counted == len(m.Labels) {
		v.anchors(filepath.Join(path, ManifestName), m, all)
	}
	v.boots(segments)
	if keys := entityKeys(segments); len(keys) > 1 {
		v.note(path, "%s", keysText(keys))
	}
	v.chain = newChain(segments, v.unread)
	v.chain.verify(v, path)
	if by != nil {
		v.signed(path, entries, by)
	}
	v.artefacts(filepath.Join(path, ArtefactDir))
	return v, nil
}

// entries verifies the files of a directory one by one, and returns the segments that
// could be read.
func (v *Verification) entries(dir string, entries []os.DirEntry) []segment {
	var segments []segment
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() || e.Name()[0] == '.':
		case strings.HasSuffix(e.Name(), arrowfile.OpenExt):
			v.unread[arrowfile.SegmentOf(name)] = true
			v.fault(name, "not sealed, so it cannot be verified: its writer still runs, or was killed")
		case strings.HasSuffix(e.Name(), labelExt):
			v.orphan(name, entries)
		case segmentLike(e.Name()):
			switch meta := v.file(name); {
			case meta == nil:
				v.unread[arrowfile.SegmentOf(name)] = true
			case meta.Kind != arrowfile.KindSnapshot:
				v.fault(name, "it holds %ss and has no place in a data set", meta.Kind)
			default:
				segments = append(segments, segment{path: name, meta: *meta})
			}
		}
	}
	return segments
}

// file verifies one sealed file by itself; nil when nothing can be said about it.
func (v *Verification) file(path string) *arrowfile.Meta {
	r, err := arrowfile.Verify(path)
	v.Segments++
	if err != nil {
		v.add(path, err)
		return nil
	}
	v.Rows += r.Rows
	v.Ledger.Add(r.Meta.Ledger)
	return &r.Meta
}

// orphan reports a label file whose segment is gone.
func (v *Verification) orphan(path string, entries []os.DirEntry) {
	want := strings.TrimSuffix(filepath.Base(path), labelExt) + arrowfile.Ext
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.TrimSuffix(e.Name(), arrowfile.OpenExt) == want }) {
		v.fault(path, "labels of a segment that is not there")
	}
}

// labels verifies a segment's label file, each label against its row, and collects what
// they say of constant policies; whole says that there is one and all of it was read.
func (v *Verification) labels(s *segment, tasks map[string]scoring.Task, all map[string]*scoring.Anchors) (whole bool) {
	path := s.labelPath()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	v.Labels++
	_, err := arrowfile.Verify(path)
	if err == nil {
		err = s.openLabels()
	}
	if err != nil {
		v.add(path, err)
		return false
	}
	for p, err := range s.pairs() {
		if err != nil {
			v.add(path, err)
			return false
		}
		if p.label != nil {
			addAnchor(all, tasks, p.row, p.label)
		}
	}
	return true
}

// listed compares the label files with those that dataset.yaml lists, or the last record
// of retention.json where it lists none, and reports whether dataset.yaml lists them
// all: only then are its anchors facts of these labels. A file that is gone with its
// segment is a note.
func (v *Verification) listed(dir string, m *Manifest, entries []os.DirEntry) bool {
	labels, by := m.Labels, ManifestName
	if len(labels) == 0 {
		if done, err := readRewrites(dir); err != nil {
			v.add(filepath.Join(dir, RetentionName), err)
		} else if len(done) > 0 {
			labels, by = done[len(done)-1].Labels, RetentionName
		}
	}
	if len(labels) == 0 {
		if v.Labels > 0 {
			v.note(filepath.Join(dir, ManifestName), "it lists no label files, so that nobody can tell whether these are they: attach the labels again")
		}
		return false
	}
	return v.compareLabels(dir, labels, by, entries) && by == ManifestName
}

// compareLabels holds the label files of a directory against a list of digests.
func (v *Verification) compareLabels(dir string, labels map[string]string, by string, entries []os.DirEntry) bool {
	here := map[string]bool{}
	same := true
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), arrowfile.OpenExt)
		here[name] = true
		if _, ok := labels[name]; !ok && strings.HasSuffix(name, labelExt) && name[0] != '.' {
			v.fault(filepath.Join(dir, name), "%s does not list these labels", by)
			same = false
		}
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		path := filepath.Join(dir, name)
		sum, err := wholefile.Digest(path)
		switch {
		case err == nil && sum == labels[name]:
			continue
		case err == nil:
			v.fault(path, "its content has the SHA-256 %s, %s says %s", sum, by, labels[name])
		case !errors.Is(err, fs.ErrNotExist):
			v.add(path, err)
		case here[strings.TrimSuffix(name, labelExt)+arrowfile.Ext]:
			v.fault(path, "%s lists these labels, and they are not there", by)
		default:
			v.note(path, "gone with its segment: the anchors in %s rest on it too and are not checked", ManifestName)
		}
		same = false
	}
	return same
}

// anchorTolerance is how far a frozen anchor may lie from that of the labels.
const anchorTolerance = 1e-12

// anchors compares the frozen anchors with those of the labels. One that is not there is
// computed wherever it is needed, and does no harm.
func (v *Verification) anchors(path string, m *Manifest, all map[string]*scoring.Anchors) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		frozen, labels := m.Tasks[name], all[name].Freeze()
		if _, ok := m.Tasks[name]; !ok {
			continue
		}
		for _, a := range []struct {
			what         string
			frozen, want scoring.Number
		}{{"baseline", frozen.Baseline, labels.Baseline}, {"top", frozen.Top, labels.Top}, {"majority", frozen.Majority, labels.Majority}} {
			if !math.IsNaN(float64(a.frozen)) && !(math.Abs(float64(a.frozen-a.want)) <= anchorTolerance) {
				v.fault(path, "%s of scenario %s is %v, the labels give %v", a.what, name, float64(a.frozen), float64(a.want))
			}
		}
		if frozen.BaselineAction != labels.BaselineAction && !math.IsNaN(float64(frozen.Baseline)) {
			v.fault(path, "baseline_action of scenario %s is %q, the labels give %q", name, frozen.BaselineAction, labels.BaselineAction)
		}
	}
}

// boots checks the sequence of each recorder's segments and the sum of their ledgers.
func (v *Verification) boots(segments []segment) {
	for len(segments) > 0 {
		first := segments[0].meta
		n := 1
		for n < len(segments) && segments[n].meta.Host == first.Host && segments[n].meta.Boot == first.Boot {
			n++
		}
		v.boot(segments[:n])
		segments = segments[n:]
	}
}

func (v *Verification) boot(segments []segment) {
	whole := true
	var sum snapshot.Ledger
	for i := range segments {
		m := segments[i].meta
		sum.Add(m.Ledger)
		if i > 0 {
			if before := segments[i-1].meta.Sequence; m.Sequence != before+1 {
				whole = false
				if m.Sequence <= before {
					v.fault(segments[i].path, "segment %d of this recorder stands after segment %d", m.Sequence, before)
					continue
				}
				v.fault(segments[i].path, "segments %d to %d of this recorder are missing before it, or cannot be read", before+1, m.Sequence-1)
			}
		}
	}
	if n := segments[0].meta.Sequence; n > firstSequence {
		whole = false
		v.note(segments[0].path, "segments %d to %d of this recorder are not here (retention, or another directory)", firstSequence, n-1)
	}
	last := segments[len(segments)-1]
	switch total := last.meta.Total; {
	case total == nil:
		v.note(last.path, "the recorder's last segment is not here, or it was not closed in order: what came after is unknown")
	case total.Check() != nil:
		v.add(last.path, total.Check())
	case whole && !sameLedger(sum, *total):
		v.fault(last.path, "the segments' ledgers sum up to %s, the recorder counted %s", ledgerText(sum), ledgerText(*total))
	}
}

// firstSequence is the sequence number of a recorder's first segment.
const firstSequence = 1

// sameLedger compares the rows, and the requests where both sides count them.
func sameLedger(a, b snapshot.Ledger) bool {
	if a.Requests == nil || b.Requests == nil {
		a.Requests, b.Requests = nil, nil
	}
	return ledgerText(a) == ledgerText(b)
}

// ledgerText prints a ledger, its requests last.
func ledgerText(l snapshot.Ledger) string {
	s := countsText(snapshot.Counts{Offered: l.Offered, Written: l.Written, SampledOut: l.SampledOut, Dropped: l.Dropped})
	if l.Requests != nil {
		s += "; in requests " + countsText(*l.Requests)
	}
	return s
}

// countsText prints counts with their reasons in order, and without those that count 0.
func countsText(c snapshot.Counts) string {
	s := fmt.Sprintf("offered %d, written %d, sampled out %d", c.Offered, c.Written, c.SampledOut)
	var reasons []string
	for r, n := range c.Dropped {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("dropped %d (%s)", n, r))
		}
	}
	slices.Sort(reasons)
	return strings.Join(append([]string{s}, reasons...), ", ")
}

// artefacts checks that each file's name is the SHA-256 of its content.
func (v *Verification) artefacts(dir string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		v.add(dir, err)
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			continue
		}
		v.Artefacts++
		switch sum, err := wholefile.Digest(path); {
		case err != nil:
			v.add(path, err)
		case sum != e.Name():
			v.fault(path, "its content has the SHA-256 %s", sum)
		}
	}
}
