// Package backends turns a backend specification from the command line or a
// configuration file, such as `v2=rules:edge-v2.yaml`, into a [decision.Backend].
//
// Steps: [ParseSpec] reads the text; [Open] finds the file, or the directory with one
// file a scenario, and calls the [Factory] of the kind from the map that main passes.
// What comes back is a [Router]: it carries the user's name, sends each request to the
// engine of its scenario, and answers not-replayable (code [CodeNoStrategy]) where
// there is none.
//
// The package knows no engine: there is no registry and no import of one. It reads no
// environment variable; an option such as key_env names one, and only the factory that
// needs the key looks it up.
package backends
