// Package prefilter finds, for one text, which of many rules may hold at all, at a cost
// that does not grow with the number of rules.
//
// Steps: collect an [Entry] a rule, a test of the text without which the rule is false for
// certain; [New]; then [Filter.Rules] for each text. Equality and membership are looked up
// in a map, beginnings and ends in one map a length, and parts of the text by one walk
// through an automaton (Aho and Corasick, Efficient string matching: an aid to
// bibliographic search, CACM 18(6), 1975). What was found for a text is kept in a cache of
// fixed size, since user agents, paths and countries repeat.
//
// Several texts make an [Index]; [Columns] is one that is bound to a batch. A text that is
// absent makes the test unknown, not false: then all rules of its filter are let through.
package prefilter
