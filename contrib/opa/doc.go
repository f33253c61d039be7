// Package opa decides by Rego policies, evaluated by OPA inside the process: one policy
// file whose rule `decision` is a text, the action, or an object of action, params and
// rule. The format is described in docs/formats/opa.md.
//
// Steps: [Compile] prepares a policy once; then [Engine.Decide] for each request;
// [Engine.Explain] says which rule of the file gave the decision. [Kind] opens policies for
// `-b opa:FILE` in a program whose list of engines holds it.
//
// A policy reads no clock and no randomness but the request's, and reaches neither the
// network nor the environment: the functions that would are refused at load.
//
// It is a module of its own, since OPA brings a hundred modules and takes minutes to
// compile. There is no data document, no bundle and no batch path.
package opa
