package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

// schemas are JSON Schemas (2020-12) of the file kinds, written by hand; a test holds them
// to the readers.
//
//go:embed schemas/*.schema.json
var schemas embed.FS

func schemaKinds() []string { return []string{"rules", "strategy", "matrix", "model"} }

func (a *app) rulesSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [" + strings.Join(schemaKinds(), "|") + "]",
		Short: "Print the JSON Schema of a file kind, for editors",
		Long: `Schema prints the JSON Schema (2020-12) of rules files, or of the kind given. An editor
with a YAML language server completes and checks a file that begins with

  # yaml-language-server: $schema=rules.schema.json

The schema knows the form of a file; what names and values mean, 'clefbench rules check'
knows.`,
		Example:   "  clefbench rules schema strategy > strategy.schema.json",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: schemaKinds(),
		RunE: func(_ *cobra.Command, args []string) error {
			kind := "rules"
			if len(args) == 1 {
				kind = args[0]
			}
			data, err := schemas.ReadFile("schemas/" + kind + ".schema.json")
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(data)
			return err
		},
	}
}
