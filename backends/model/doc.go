// Package model decides by logistic regression: weights in a JSON file, over features
// that are bound to attributes by name.
//
// Steps: [Compile] reads model.json and returns all that is wrong with positions; the
// [Model] is a [decision.Backend] that gives each action a probability, chooses the most
// probable one (or, with a utility matrix, the one of highest expected utility) among
// the candidates, and reports the peak probability as its confidence.
//
// The file format and the formulas are in docs/formats/model.md. A feature whose
// attribute is missing or NaN takes the value that the file declares for that; without
// one the decision is abstain. Nothing is taken for zero silently. Decide allocates
// nothing and reads no clock.
//
// The package evaluates models, it does not fit them. Tree ensembles are not read.
package model
