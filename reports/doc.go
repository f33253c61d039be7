// Package reports prints a [scoring.Scorecard] as text, Markdown, HTML or JSON.
//
// Steps: the scorecard is laid out once as a neutral page (sections of tables, summary
// sentences, numbered footnotes); [Text], [Markdown] and [HTML] print that page, so that
// the three always say the same. [JSON] writes the scorecard itself, which is the machine
// contract (docs/formats/report.md), and [ReadJSON] reads it back bit for bit.
//
// What it holds to: a number stands beside its interval; what could not be measured is
// "NA" with the reason in a footnote, never 0; backends that cannot be told apart share a
// place ("1="); a warning of the scorecard is always printed. Output depends on nothing
// but the scorecard and the [Options]: no clock, no locale, no environment. Names come
// from users' files, so control characters are made visible, Markdown and HTML escaped.
//
// It computes no score and judges no gate: it prints what package scoring found.
package reports
