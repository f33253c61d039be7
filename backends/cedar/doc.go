// Package cedar decides by Cedar policies (cedar-go): a policy file, and a mapping file
// that lists the actions in order of preference. The format is described in
// docs/formats/cedar.md.
//
// Cedar answers allow or deny for one action. A decision among several is therefore a
// question for each: the first action, in the mapping's order, that the policies permit
// wins. Policies stand in no order, so that "the first rule that matches" can be said only
// as "the first action that is permitted".
//
// Steps: [PoliciesOf] names the policy file of a mapping; [Compile] takes both; then
// [Engine.Decide] for each request. [Engine.Explain] says which policies permitted,
// forbade or failed, and [Check] lists what is wrong in the files.
//
// Cedar has no floating point. A double becomes a decimal of four digits where it is one,
// and is left out of the context otherwise, unless the mapping says `doubles: round`.
//
// There are no entities: principal and resource are fixed, everything is in the context.
package cedar
