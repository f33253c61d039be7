package datasets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// creditTask is the fraud scenario: real credit applications with their outcome. Paying
// out what is not paid back is the worst mistake, and so is turning a good customer away;
// a person who looks at the case finds the truth at a price, so it is worth asking only
// where neither answer is likely.
func creditTask() scoring.Task {
	return scoring.Task{
		Candidates: []string{"approve", "manual_review", "block"},
		Utility: map[string]map[string]float64{
			"approve": {"approve": 1, "manual_review": 0.55, "block": 0},
			"block":   {"approve": 0, "manual_review": 0.55, "block": 1},
		},
		Ceiling:       scoring.Number(math.NaN()),
		LabelStrength: "strong: repaid or not",
	}
}

// creditColumns are the source's columns after Status; those listed as text are
// categories.
const (
	creditColumns = "Seniority Home Time Age Marital Records Job Expenses Income Assets Debt Amount Price"
	creditText    = " Home Marital Records Job "
)

func creditSchema() (*decision.Schema, error) {
	var fields []decision.Field
	for c := range strings.FieldsSeq(creditColumns) {
		t := decision.Int
		if strings.Contains(creditText, " "+c+" ") {
			t = decision.String
		}
		fields = append(fields, decision.Field{Name: "local." + strings.ToLower(c), Type: t})
	}
	fields = append(fields, decision.Field{Name: "local.financed", Type: decision.Double})
	return schemaOf(fields...)
}

func creditExamples() iter.Seq2[*Example, error] {
	schema, err := creditSchema()
	if err != nil {
		return failing(err)
	}
	data, err := embedded("credit_data.csv.gz")
	if err != nil {
		return failing(err)
	}
	return func(yield func(*Example, error) bool) {
		r := csv.NewReader(bytes.NewReader(data))
		if head, err := r.Read(); err != nil || strings.Join(head, " ") != "Status "+creditColumns {
			yield(nil, fmt.Errorf("credit_data.csv:1: unexpected columns %q (%v)", head, err))
			return
		}
		for n := 1; ; n++ {
			rec, err := r.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			var ex *Example
			if err == nil {
				ex, err = creditExample(schema, n, rec)
			}
			if !yield(ex, err) || err != nil {
				return
			}
		}
	}
}

func creditExample(schema *decision.Schema, n int, rec []string) (*Example, error) {
	action := map[string]string{"good": "approve", "bad": "block"}[rec[0]]
	if action == "" {
		return nil, fmt.Errorf("credit_data.csv: row %d: status %q", n, rec[0])
	}
	const path = "/api/v1/applications"
	values := []decision.Value{decision.StringValue("POST"), decision.StringValue(path)}
	for i, cell := range rec[1:] {
		v, err := creditValue(cell, schema.Fields()[len(values)].Type)
		if err != nil {
			return nil, fmt.Errorf("credit_data.csv: row %d, column %d: %w", n, i+2, err)
		}
		values = append(values, v)
	}
	amount, price := values[schema.Index("local.amount")], values[schema.Index("local.price")]
	if price.Int() > 0 {
		// What the service derives: the share of the price that is to be borrowed.
		values = append(values, decision.DoubleValue(round6(float64(amount.Int())/float64(price.Int()))))
	}
	id := fmt.Sprintf("credit_data/%d", n)
	return &Example{
		Scenario: Fraud, Method: "POST", Path: path,
		Attrs:      decision.Attrs{Schema: schema, Values: values},
		Candidates: creditTask().Candidates,
		Label:      snapshot.Label{Action: action, Source: "credit_data"},
		SourceID:   id,
		Entity:     id, // every application is another person
		Train:      inTrain(strings.Join(rec[1:], ",")),
	}, nil
}

// creditValue reads one cell; an empty one is null.
func creditValue(cell string, t decision.Type) (decision.Value, error) {
	switch {
	case cell == "":
		return decision.Value{}, nil
	case t == decision.String:
		return decision.StringValue(cell), nil
	}
	i, err := strconv.ParseInt(cell, 10, 64)
	if err != nil {
		return decision.Value{}, err
	}
	return decision.IntValue(i), nil
}
