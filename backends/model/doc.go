// Package model decides by logistic regression (weights in a JSON file) or by trees that
// LightGBM or XGBoost trained (a JSON file that refers to theirs), over features that are
// bound to attributes by name.
//
// Steps: [Compile] reads model.json ([CompileIn] also the tree file beside it) and returns
// all that is wrong with positions; the
// [Model] is a [decision.Backend] that gives each action a probability, chooses the most
// probable one (or, with a utility matrix, the one of highest expected utility) among
// the candidates, and reports the peak probability as its confidence.
//
// The file formats and the formulas are in docs/formats/model.md. A feature of a logistic
// model whose attribute is missing or NaN takes the value that the file declares for that;
// without one the decision is abstain. Trees send missing values where the library that
// trained them does. Nothing is taken for zero silently. Decide allocates nothing and
// reads no clock.
//
// The package evaluates models, it does not fit them; package fit does. Formats are read,
// not written, and what a format may hold that is not evaluated exactly is refused.
package model
