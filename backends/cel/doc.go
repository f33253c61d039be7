// Package cel decides by plain cel-go: a YAML file of rules with conditions in CEL, one
// program a rule, the first that is true wins. The format is described in
// docs/formats/cel.md.
//
// It is what a service has that embeds CEL as it comes, and stands beside backends/strategy
// for comparison: nothing is lowered, indexed or shared between rules, and a missing
// attribute is a missing key of a map. It shares no code with internal/expr, so that a
// mistake there does not show in both.
//
// Steps: [Compile] a file, then [Engine.Decide] for each request; [Engine.Explain] says
// why, and [Check] lists what is wrong in a file. Converting a request to CEL's values and
// evaluating are two stages; they are timed with [Options.Stages] only, since three looks
// at the clock cost as much as a rule.
//
// It has no templates, no model and no batch path.
package cel
