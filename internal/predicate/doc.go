// Package predicate reasons about conditions without running them: which follow from
// others, which exclude each other, and which rule of a list can never decide because an
// earlier one matches whenever it does.
//
// Steps: write each condition as a [Formula] over [Predicate] leaves, then ask
// [Contradiction] about facts that must hold together, or fill a [Shadows] with the
// rules in order.
//
// Everything it says is certain, and it does not find everything: a condition that it
// cannot compare with another one implies only itself. Truth is three-valued. A fact is
// known to be true or false, so its value is there, is no NaN and has the type that the
// fact compares; a conclusion is drawn only where the same follows for the goal. A rule
// that an absent attribute leaves unknown therefore shadows nothing that does not read
// that attribute itself.
//
// The package knows no file format and no request.
package predicate
