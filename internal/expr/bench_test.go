package expr

import "testing"

// BenchmarkCondition compares a lowered condition with the same one in cel-go, in one
// run: the ratio is what counts.
func BenchmarkCondition(b *testing.B) {
	schema := testSchema(b)
	scope := NewScope(schema)
	values := map[string]any{"path": "/api/v1/users", "headers.user-agent": "Mozilla/5.0 (X11; Linux x86_64) curl/8", "env.country": "CN", "metrics.rate": 0.05, "score": 0.7, "count": 7}
	for name, text := range map[string]string{
		"country-and-path": `env.country == "CN" && path.startsWith("/api/v1")`,
		"threshold":        `metrics.rate > 0.1`,
		"agent":            `headers["user-agent"].contains("bot") && metrics.rate > 0.1`,
		"confidence":       `confidence(score) < 0.6`,
		"dynamic":          `local.mode == "slow" || count > 7`,
	} {
		p := compileText(b, scope, text)
		row := bind(b, scope, schema, values)
		b.Run(name+"/lowered", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Eval(row)
			}
		})
		b.Run(name+"/cel-go", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.evalCEL(row); err != nil && name != "dynamic" {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	scope := NewScope(testSchema(b))
	c, err := NewCompiler(scope, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if p, _ := c.compile(`env.country == "CN" && path.startsWith("/api/v1")`); p == nil {
			b.Fatal("does not compile")
		}
	}
}
