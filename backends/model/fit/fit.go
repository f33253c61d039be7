package fit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
)

// ErrRefused is wrapped by the error of a fit that would not be worth having; the text
// says why.
var ErrRefused = errors.New("no model was fitted")

// HoldoutShare is the share of the entities that is set aside. It is no option, and
// neither is the hash that chooses them: a hold-out that can be drawn again is no hold-out.
const HoldoutShare = 0.25

const holdoutSeed = 0x636c656662656e63

// Row is one decision with its truth.
type Row struct {
	Attrs decision.Attrs
	// Class is the action that was right.
	Class string
	// Weight is how many rows this one stands for: 1/keep_prob.
	Weight float64
	// Cluster is what rows have in common that are not independent: the entity, or else
	// the request. All rows of a cluster are on the same side of every split.
	Cluster []byte
}

// Missing is what a numeric attribute that is absent counts as.
type Missing string

// The treatments: the mean of the training rows, and a column that says whether it was
// there; or the mean alone.
const (
	MissingIndicator Missing = "indicator"
	MissingMean      Missing = "mean"
)

// Calibration is how scores are corrected on out-of-fold predictions.
type Calibration string

// The calibrations: none; one factor for all scores; factor and offset (two classes only).
const (
	CalibrateNone        Calibration = "none"
	CalibrateTemperature Calibration = "temperature"
	CalibratePlatt       Calibration = "platt"
)

// Options configure a fit.
type Options struct {
	// Name, Version and Scenario go into the file.
	Name, Version, Scenario string
	// L2 is the penalty l2/2 * sum of squared weights on standardised columns, against a
	// likelihood whose row weights have the mean 1; at least 0. Biases are not penalised.
	L2 float64
	// Values is the number of most frequent values of a text that get a column.
	Values int
	// MinRows is the least number of training rows of a class, and of a text's value.
	MinRows int
	Missing Missing
	// Calibrate uses Folds folds of the training rows, drawn under Seed.
	Calibrate Calibration
	Folds     int
	Seed      uint64
	// Attributes, when not empty, are those to use; Exclude are left out.
	Attributes, Exclude []string
}

// DefaultOptions are L2 1, 20 values, 20 rows, indicators for missing values and no
// calibration.
func DefaultOptions() Options {
	return Options{Name: "logistic", L2: 1, Values: 20, MinRows: 20, Missing: MissingIndicator, Calibrate: CalibrateNone, Folds: 5, Seed: 1}
}

// Result is a fitted model and what it is worth.
type Result struct {
	// File is the model.json.
	File []byte
	// Classes are in the order of the file's probabilities.
	Classes []Class
	// Columns counts the model's columns; Dropped names attributes that had nothing to tell,
	// and why.
	Columns int
	Dropped []string
	// Iterations is the number of Newton steps.
	Iterations int
	// Factor and Offset are those of the calibration; 1 and 0 without.
	Factor, Offset float64
	// Train and Holdout count rows.
	Train, Holdout int
	Metrics        Metrics
}

// Class is an action and its rows.
type Class struct {
	Action         string
	Train, Holdout int
}

// Fit fits a model. The error wraps [ErrRefused] where the rows do not carry one.
func Fit(rows []Row, o Options) (*Result, error) {
	if err := o.check(rows); err != nil {
		return nil, err
	}
	train, holdout := split(rows)
	r := &Result{Train: len(train), Holdout: len(holdout), Factor: 1}
	if err := r.classes(train, holdout, &o); err != nil {
		return nil, err
	}
	d, err := newDesign(train, r.Classes, &o)
	if err != nil {
		return nil, err
	}
	r.Columns, r.Dropped = d.columns-1, d.dropped
	all := d.samples(train)
	beta, err := maximise(all, o.L2)
	if err != nil {
		return nil, err
	}
	r.Iterations = beta.iterations
	if o.Calibrate != CalibrateNone {
		if r.Factor, r.Offset, err = calibrate(all, train, &o); err != nil {
			return nil, err
		}
		beta.scale(r.Factor, r.Offset)
	}
	r.File = d.file(beta, &o)
	m, err := model.Compile("model.json", r.File)
	if err != nil {
		return nil, fmt.Errorf("the fitted file is not read: %w", err)
	}
	if r.Metrics, err = measure(m, train, holdout, r.Classes); err != nil {
		return nil, err
	}
	return r, nil
}

func (o *Options) check(rows []Row) error {
	switch {
	case !(o.L2 >= 0) || math.IsInf(o.L2, 1):
		return fmt.Errorf("the penalty %v must be at least 0 and finite", o.L2)
	case o.Values < 0 || o.MinRows < 1:
		return errors.New("the number of values must be at least 0, that of rows at least 1")
	case o.Missing != MissingIndicator && o.Missing != MissingMean:
		return fmt.Errorf("unknown treatment of missing values %q (want %s or %s)", o.Missing, MissingIndicator, MissingMean)
	case o.Calibrate != CalibrateNone && o.Calibrate != CalibrateTemperature && o.Calibrate != CalibratePlatt:
		return fmt.Errorf("unknown calibration %q (want %s, %s or %s)", o.Calibrate, CalibrateNone, CalibrateTemperature, CalibratePlatt)
	case o.Calibrate != CalibrateNone && o.Folds < 2:
		return fmt.Errorf("%d folds, want at least 2", o.Folds)
	case len(rows) == 0:
		return fmt.Errorf("%w: there are no rows with a label", ErrRefused)
	}
	for i := range rows {
		if w := rows[i].Weight; !(w > 0) || math.IsInf(w, 1) || rows[i].Class == "" {
			return fmt.Errorf("row %d has weight %v and class %q", i, w, rows[i].Class)
		}
	}
	return nil
}

// share is a number in [0,1) that belongs to a cluster.
func share(seed uint64, cluster []byte) float64 {
	return float64(stats.Hash(seed, cluster)>>11) / (1 << 53)
}

func split(rows []Row) (train, holdout []Row) {
	for _, r := range rows {
		if share(holdoutSeed, r.Cluster) < HoldoutShare {
			holdout = append(holdout, r)
		} else {
			train = append(train, r)
		}
	}
	return train, holdout
}

// classes counts the rows of each class and refuses what is too few to learn or to measure.
func (r *Result) classes(train, holdout []Row, o *Options) error {
	counts := map[string]*Class{}
	for side, rows := range [][]Row{train, holdout} {
		for _, row := range rows {
			c := counts[row.Class]
			if c == nil {
				c = &Class{Action: row.Class}
				counts[row.Class] = c
			}
			if side == 0 {
				c.Train++
			} else {
				c.Holdout++
			}
		}
	}
	var few []string
	for _, c := range counts {
		r.Classes = append(r.Classes, *c)
		if c.Train < o.MinRows || c.Holdout == 0 {
			few = append(few, fmt.Sprintf("%s has %d for training and %d held out", c.Action, c.Train, c.Holdout))
		}
	}
	slices.SortFunc(r.Classes, func(a, b Class) int { return cmp.Compare(a.Action, b.Action) })
	slices.Sort(few)
	switch {
	case len(r.Classes) < 2:
		return fmt.Errorf("%w: all rows have the class %s", ErrRefused, r.Classes[0].Action)
	case len(few) > 0:
		return fmt.Errorf("%w: too few rows of a class (want %d and 1): %s", ErrRefused, o.MinRows, strings.Join(few, "; "))
	case len(r.Classes) > maxClasses:
		return fmt.Errorf("%w: %d classes, a model holds %d", ErrRefused, len(r.Classes), maxClasses)
	}
	return nil
}
