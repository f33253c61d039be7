package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

type verifyFlags struct {
	format     string
	keys, kept []string
}

func (a *app) verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify DATASET...",
		Short: "Check every digest, every ledger and the chain of segments",
		Long: `Verify reads every byte: digests, rows, ledgers, labels, artefacts, and that each segment
follows the one that it names with the digest that it names, so that one that is missing,
replaced, reordered or sealed again is found. Whoever can write all files can make a whole
new chain: with --key the chain must also lead to a checkpoint that this key has signed.

  openssl pkey -in key.pem -pubout -out key.pub      the public key of a private one`,
		Example: `  clefbench datasets verify snapshots
  clefbench datasets verify snapshots --key key.pub --checkpoint /elsewhere/dataset.checkpoint`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.verifyDatasets(args, &f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.format, "format", "f", "text", "text or json")
	fl.StringArrayVar(&f.keys, "key", nil, "PEM file of an Ed25519 public key: checkpoints must be signed by one of them (repeat)")
	fl.StringArrayVar(&f.kept, "checkpoint", nil, "checkpoint file that was kept elsewhere, beside those in the directory (repeat; needs --key)")
	return cmd
}

// signed reads the keys; nil when nothing has to be signed.
func (f *verifyFlags) signed() (*datasets.Signed, error) {
	if len(f.keys) == 0 {
		if len(f.kept) > 0 {
			return nil, fail(exitUsage, "--key FILE is the public key that it is verified by", "--checkpoint needs --key")
		}
		return nil, nil
	}
	by := &datasets.Signed{Kept: f.kept}
	for _, path := range f.keys {
		key, err := checkpoint.ReadPublicKey(path)
		if err != nil {
			return nil, usage(err, "openssl pkey -in key.pem -pubout -out key.pub")
		}
		by.Keys = append(by.Keys, key)
	}
	return by, nil
}

// verifyDatasets verifies each path; the first that fails decides the exit code, after
// all were looked at.
func (a *app) verifyDatasets(args []string, f *verifyFlags) error {
	if f.format != "text" && f.format != "json" {
		return fail(exitUsage, "formats: text, json", "unknown format %q", f.format)
	}
	by, err := f.signed()
	if err != nil {
		return err
	}
	var failed error
	for _, path := range args {
		verify := datasets.Verify
		if by != nil {
			verify = func(dir string) (*datasets.Verification, error) { return datasets.VerifySigned(dir, *by) }
		}
		v, err := verify(path)
		if err != nil {
			return err
		}
		if f.format == "json" {
			err = writeJSON(a.stdout, v)
		} else {
			err = a.verification(v)
		}
		if err != nil {
			return err
		}
		if err := v.Err(); err != nil && failed == nil {
			failed = &failure{exitData, err, verifyHint(err)}
		}
	}
	return failed
}

func verifyHint(err error) string {
	if errors.Is(err, arrowfile.ErrUnsealed) {
		return "'clefbench datasets repair' seals what a killed recording left open"
	}
	return "what is damaged or missing has to come back from a copy; rows of whole segments can be read all the same"
}

func (a *app) verification(v *datasets.Verification) error {
	var b strings.Builder
	for _, f := range v.Findings {
		kind := "damaged"
		if f.Note {
			kind = "note"
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", f.Path, kind, f.Text)
	}
	result := "every digest and every ledger verified"
	if v.Checkpoints > 0 {
		result = fmt.Sprintf("every digest, every ledger and %d checkpoints verified", v.Checkpoints)
	}
	if v.Err() != nil {
		result = "NOT verified"
	}
	fmt.Fprintf(&b, "%s: %s: %d segments, %d label files, %d artefacts, %d rows\n",
		v.Path, result, v.Segments, v.Labels, v.Artefacts, v.Rows)
	_, err := io.WriteString(a.stdout, printable(b.String()))
	return err
}

func (a *app) checkpointCommand() *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "checkpoint DIR --key FILE",
		Short: "Sign how far the chains of segments have come",
		Long: `Checkpoint verifies a data set and signs the last segment of each chain, in the file
dataset.checkpoint. Keep a copy elsewhere: whoever can write the directory can put it back
to an older state with an older checkpoint, but not to one that a newer checkpoint denies.

  openssl genpkey -algorithm ed25519 -out key.pem    makes a private key; keep it from others
  openssl pkey -in key.pem -pubout -out key.pub      the public key, for verify --key`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key, err := readSigningKey(keyFile)
			if err != nil {
				return err
			}
			c, err := datasets.Checkpoint(args[0], key, time.Now())
			if err != nil {
				return err
			}
			if !a.quiet {
				fmt.Fprintf(a.stdout, "%s: signed %d chains\n", filepath.Join(args[0], "dataset"+checkpoint.Ext), len(c.Heads))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "PEM file of the Ed25519 private key (required)")
	return cmd
}

// readSigningKey reads a private key; mistakes about it are mistakes of usage.
func readSigningKey(path string) (ed25519.PrivateKey, error) {
	if path == "" {
		return nil, fail(exitUsage, "openssl genpkey -algorithm ed25519 -out key.pem", "checkpoint needs --key FILE")
	}
	key, err := checkpoint.ReadPrivateKey(path)
	if err != nil {
		return nil, usage(err, "openssl genpkey -algorithm ed25519 -out key.pem")
	}
	return key, nil
}
