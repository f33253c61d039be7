// Package term knows what a writer is connected to: whether it is a terminal, how wide,
// whether colours are wanted; and it shows the [Progress] of a long job there.
//
// Steps: [Detect] a writer once at the start of a command, hand the answers (width,
// colour) to what prints, and start a [Progress] for what takes long.
//
// The environment is passed in, never read, so that tests need not change it. It draws
// one line and no more: no bars, no cursor games, no raw mode, no key presses.
package term
