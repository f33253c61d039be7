package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// buildVersion is the module version or the commit of this build.
func buildVersion() (version, commit string) {
	version = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return version, commit
}

func (a *app) versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, the schema and the score",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, commit := buildVersion()
			switch format {
			case "text":
				fmt.Fprintf(a.stdout, "clefbench %s\nschema %d\nscore %s\n%s %s/%s\n",
					version, snapshot.SchemaVersion, scoring.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			case "json":
				enc := json.NewEncoder(a.stdout)
				return enc.Encode(map[string]any{"version": version, "commit": commit, "schema": snapshot.SchemaVersion,
					"score": scoring.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			return fail(exitUsage, "formats: text, json", "unknown format %q", format)
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "text", "text or json")
	return cmd
}
