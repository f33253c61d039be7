// Package scoring turns outcomes and labels into a scorecard.
package scoring
