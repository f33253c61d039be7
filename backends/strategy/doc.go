// Package strategy is the Clef strategy engine: a YAML file of rules with conditions in
// CEL, and a fallback model for what no rule decides. The format is described in
// docs/formats/strategy.md.
//
// Steps: [ModelOf] tells which model file the strategy wants; open it as a backend and
// pass it to [Compile]; then [Engine.Decide] for each request. [Engine.Explain] says
// why, and [Check] lists everything that is wrong or doubtful in a file.
//
// Rules come first. The model is asked only when no rule decides, or when a rule that
// is reached needs model.score, model.confidence or model.action to decide; it is asked
// once a request. A model that fails or takes longer than the file's timeout_ms gives
// the fallback action, or, without one, an outcome that says so; never a silent default.
//
// The deadline is checked after the model has answered: an in-process model is not
// interrupted, and one that overran is asked once more before that counts. The package
// loads no model file and knows no kind of model.
package strategy
