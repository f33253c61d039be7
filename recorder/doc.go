// Package recorder is not yet filled.
package recorder
