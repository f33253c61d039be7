package datasets

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
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

// agentTask is the api-abuse scenario: which user agents an API lets in. The categories
// are those of the source; what to do about each is this demo's policy (agentAction).
// Shutting out a person or a wanted bot is the worst mistake, letting a scanner in is as
// bad; slowing down is the cautious middle.
func agentTask() scoring.Task {
	return scoring.Task{
		Candidates: []string{"allow", "rate_limit", "block"},
		Utility: map[string]map[string]float64{
			"allow":      {"allow": 1, "rate_limit": 0.5, "block": 0},
			"rate_limit": {"allow": 0.3, "rate_limit": 1, "block": 0.6},
			"block":      {"allow": 0, "rate_limit": 0.5, "block": 1},
		},
		Ceiling:       scoring.Number(math.NaN()),
		LabelStrength: "strong for bot or browser, policy for the three-way action",
	}
}

// agentAction maps a category of the source to the right action; "" for an unknown one.
func agentAction(category string) string {
	switch category {
	case "browser", "search-engine", "social-preview", "monitoring", "feed-reader":
		return "allow" // people, and bots that bring or serve them
	case "seo", "http-library", "advertising", "ai-crawler", "archiver", "academic":
		return "rate_limit" // takes more than it gives; slow down, do not break
	case "scanner", "browser-automation":
		return "block" // probes for weaknesses, or a machine that poses as a person
	}
	return ""
}

// agentFamilies is a fixed list of words that a service looks for in a user agent, first
// match wins: names that are widely known, then kinds of software, then the words that
// most crawlers carry. It was written from general knowledge and the training rows.
const agentFamilies = "googlebot bingbot msnbot yandex baidu slurp duckduck applebot sogou yacy seznam " +
	"facebook meta-external twitter slack whatsapp telegram linkedin pinterest discord flipboard preview embed " +
	"uptime pingdom monitor w3c lighthouse rss feed miniflux " +
	"ahrefs semrush mj12 rogerbot spbot seo adsbot " +
	"gpt claude perplexity bytespider ccbot archive heritrix " +
	"headless selenium puppeteer phantomjs nikto nmap zgrab censys security scan " +
	"curl wget python java okhttp go-http ruby perl php httpclient libwww " +
	"check validator proxy link fetch search spider crawl bot"

// agentFeatures is what the demo's service derives from a user agent alone: the family,
// whether it names a URL or a mailbox, whether it reads like a browser, and its length.
func agentFeatures(ua string) (family string, contact, browser bool, length int64) {
	low := strings.ToLower(ua)
	family = "none"
	for f := range strings.FieldsSeq(agentFamilies) {
		if strings.Contains(low, f) {
			family = f
			break
		}
	}
	contact = strings.Contains(low, "http:") || strings.Contains(low, "https:") || strings.Contains(low, "www.") || strings.Contains(low, "@")
	browser = strings.HasPrefix(ua, "Mozilla/5.0 (") && !strings.Contains(low, "compatible;") &&
		(strings.Contains(ua, "Safari/") || strings.Contains(ua, "Firefox/"))
	return family, contact, browser, int64(len(ua))
}

type agentRow struct {
	UA       string `json:"ua"`
	Category string `json:"category"`
}

func agentExamples() iter.Seq2[*Example, error] {
	schema, err := schemaOf(
		decision.Field{Name: "headers.user-agent", Type: decision.String},
		decision.Field{Name: "local.ua_family", Type: decision.String},
		decision.Field{Name: "local.ua_contact", Type: decision.Bool},
		decision.Field{Name: "local.ua_browser", Type: decision.Bool},
		decision.Field{Name: "local.ua_length", Type: decision.Int})
	if err != nil {
		return failing(err)
	}
	data, err := embedded("user_agents_npm.jsonl.gz")
	if err != nil {
		return failing(err)
	}
	return func(yield func(*Example, error) bool) {
		n := 0
		for line := range bytes.Lines(data) {
			n++
			ex, err := agentExample(schema, n, line)
			if !yield(ex, err) || err != nil {
				return
			}
		}
	}
}

func agentExample(schema *decision.Schema, n int, line []byte) (*Example, error) {
	var row agentRow
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fmt.Errorf("user_agents_npm.jsonl:%d: %w", n, err)
	}
	action := agentAction(row.Category)
	if action == "" {
		return nil, fmt.Errorf("user_agents_npm.jsonl:%d: unknown category %q", n, row.Category)
	}
	family, contact, browser, length := agentFeatures(row.UA)
	path := fmt.Sprintf("/api/v1/items/%d", n%100)
	return &Example{
		Scenario: APIAbuse, Method: "GET", Path: path,
		Headers: map[string]string{"User-Agent": row.UA},
		Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{
			decision.StringValue("GET"), decision.StringValue(path), decision.StringValue(row.UA),
			decision.StringValue(family), decision.BoolValue(contact), decision.BoolValue(browser), decision.IntValue(length),
		}},
		Candidates: agentTask().Candidates,
		Label:      snapshot.Label{Action: action, Source: "user_agents_npm"},
		SourceID:   fmt.Sprintf("user_agents_npm/%d", n),
		Entity:     agentEntity(row.UA),
		Train:      inTrain(row.UA),
	}, nil
}

// agentEntity groups the versions of one agent: the user agent without its digits.
func agentEntity(ua string) string {
	return strings.Map(func(r rune) rune {
		if (r >= '0' && r <= '9') || r == '.' || r == '_' {
			return -1
		}
		return r
	}, ua)
}

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
