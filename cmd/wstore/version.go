package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/format"
)

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the format",
		Example: "  wstore version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if asJSON {
				return writeJSON(a.out, v)
			}
			fmt.Fprintln(a.out, v)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// version is what version --json prints.
type version struct {
	Schema   int    `json:"schema"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, if the build knew it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Format   int    `json:"format"` // version of the file format
}

func (v version) String() string {
	text := "wstore " + v.Version
	if v.Revision != "" {
		text += " (" + v.Revision + ")"
	}
	return fmt.Sprintf("%s, format %d, %s %s/%s", text, v.Format, v.Go, v.OS, v.Arch)
}

func readVersion() version {
	v := version{Schema: jsonSchema, Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Format: format.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+dirty"
			}
		}
	}
	if v.Revision != "" {
		v.Revision = v.Revision[:min(12, len(v.Revision))] + dirty
	}
	return v
}
