package backends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// maxFile bounds a strategy, table or model file: 64 MiB. Each engine has a limit of
// its own below it.
const maxFile = 64 << 20

// Source is what a Factory makes a backend from.
type Source struct {
	// Name is the lane's name.
	Name string
	// Path is the file that was read, empty when the target is no file. Files that the
	// strategy refers to are relative to its directory.
	Path string
	// Data is the content of the file; nil when the target is no file.
	Data []byte
	// Target is as it stands in the specification.
	Target  string
	Options url.Values
	// Schema is the attributes of the data set at hand; nil when there is none.
	Schema *decision.Schema
}

// Factory makes a backend, or returns all problems of its file with positions.
type Factory func(ctx context.Context, src Source) (decision.Backend, error)

// Kind is how one sort of backend is opened.
type Kind struct {
	// File is the name of its file inside DIR/<scenario>/; empty says that the target is
	// not a file.
	File string
	// Options are the names that a kind with a file takes after the question mark; any
	// other is refused. A kind without a file checks its options itself.
	Options []string
	Open    Factory
}

// Open makes the backend that spec names. A target that is a directory is searched for
// one file a scenario. The error of a factory is returned as it is, since it carries
// the file's positions; a missing file wraps [fs.ErrNotExist], an unknown kind [ErrSpec].
func Open(ctx context.Context, spec Spec, kinds map[string]Kind, schema *decision.Schema) (decision.Backend, error) {
	kind, ok := kinds[spec.Kind]
	if !ok {
		return nil, unknownKind(spec, kinds)
	}
	src := Source{Name: spec.Name, Target: spec.Target, Options: spec.Options, Schema: schema}
	switch {
	case kind.File == "":
		b, err := kind.Open(ctx, src)
		if err != nil {
			return nil, fmt.Errorf("-b %s: %w", spec, err)
		}
		return single(spec, b), nil
	case spec.Target == "":
		return nil, fmt.Errorf("%w: %s needs a file or a directory, as in %s:DIR or %s:DIR/%s", ErrSpec, spec.Kind, spec.Kind, spec.Kind, kind.File)
	}
	if err := kind.checkOptions(spec); err != nil {
		return nil, err
	}
	st, err := os.Stat(spec.Target)
	switch {
	case err != nil:
		return nil, fmt.Errorf("-b %s: %w", spec, err)
	case st.IsDir():
		return openDir(ctx, spec, kind, src)
	}
	b, err := openFile(ctx, kind, src, spec.Target)
	if err != nil {
		return nil, err
	}
	return single(spec, b), nil
}

// checkOptions refuses an option that would be ignored.
func (k Kind) checkOptions(spec Spec) error {
	for _, key := range slices.Sorted(maps.Keys(spec.Options)) {
		if slices.Contains(k.Options, key) {
			continue
		}
		hint := "it takes none"
		if len(k.Options) > 0 {
			hint = "it takes " + strings.Join(k.Options, ", ")
		}
		return fmt.Errorf("%w: %s has no option %q; %s", ErrSpec, spec.Kind, key, hint)
	}
	return nil
}

func unknownKind(spec Spec, kinds map[string]Kind) error {
	known := slices.Sorted(maps.Keys(kinds))
	hint := ""
	if c := document.Closest(spec.Kind, known); c != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", c)
	}
	return fmt.Errorf("%w: unknown kind %q%s; known kinds: %s", ErrSpec, spec.Kind, hint, strings.Join(known, ", "))
}

func openFile(ctx context.Context, kind Kind, src Source, path string) (decision.Backend, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("-b %s: %w", src.Name, err)
	}
	src.Path, src.Data = path, data
	return kind.Open(ctx, src)
}

// readFile reads a regular file of bounded size. It asks before it opens, for opening a
// pipe would wait for a writer.
func readFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	case st.Size() > maxFile:
		return nil, fmt.Errorf("%s: %d bytes, the limit is %d", path, st.Size(), maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("the file grows while it is read")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// openDir opens DIR/<scenario>/<file> for each scenario that has one. All files are
// tried, so that the user sees the problems of all of them at once.
func openDir(ctx context.Context, spec Spec, kind Kind, src Source) (decision.Backend, error) {
	entries, err := os.ReadDir(spec.Target)
	if err != nil {
		return nil, fmt.Errorf("-b %s: %w", spec, err)
	}
	routes := map[string]decision.Backend{}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(spec.Target, e.Name(), kind.File)
		if _, err := os.Stat(path); err != nil {
			if !missing(err) {
				errs = append(errs, err)
			}
			continue
		}
		b, err := openFile(ctx, kind, src, path)
		if err == nil {
			routes[e.Name()] = b
			err = checkScenario(e.Name(), path, b)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && len(routes) == 0 {
		pattern := filepath.Join(spec.Target, "<scenario>", kind.File)
		errs = append(errs, fmt.Errorf("-b %s: no file %s: %w", spec, pattern, fs.ErrNotExist))
	}
	if len(errs) > 0 {
		for _, b := range routes {
			errs = append(errs, b.Close(ctx))
		}
		return nil, errors.Join(errs...)
	}
	return perScenario(spec, routes), nil
}

// missing also holds for DIR/README/rules.yaml where README is a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// checkScenario refuses a file that says it is for other scenarios than its directory's.
func checkScenario(scenario, path string, b decision.Backend) error {
	if list := b.Info().Scenarios; len(list) > 0 && !slices.Contains(list, scenario) {
		return fmt.Errorf("%s: the file is for the scenarios %s and stands in the directory of %s", path, strings.Join(list, ", "), scenario)
	}
	return nil
}
