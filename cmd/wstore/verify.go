package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

func newVerify(a *app) *cobra.Command {
	var quick, asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check every byte of a file",
		Long: `verify reads the whole file and checks every byte of it: structure, checksums, order of
times, cells, window index, padding and content digest. It prints the digest and how much
was checked; damage is exit code 3, with the first byte at which it was found.

--quick checks what opening does: slots, catalog and sections, not the data.`,
		Example: `  wstore verify prices.wst
  wstore verify prices.wst --quick --json`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := verify(cmd.Context(), args[0], quick)
			var damage *format.CorruptError
			if asJSON && (err == nil || errors.As(err, &damage)) {
				if damage != nil {
					v.Code, v.Section, v.Offset, v.Error = damage.Code, damage.Section, &damage.Offset, damage.Error()
				}
				if err := writeJSON(a.out, v); err != nil {
					return err
				}
			}
			if err != nil || asJSON {
				return err
			}
			what := "all of its "
			if quick {
				what = "its structure, "
			}
			fmt.Fprintf(a.out, "OK %s: %s%s bytes checked, digest %s\n", clean(v.File), what, count(v.Bytes), v.Digest)
			return nil
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "check the structure only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, also about a corrupt file")
	return cmd
}

// verification is what verify --json prints.
type verification struct {
	Schema  int         `json:"schema"`
	File    string      `json:"file"`
	OK      bool        `json:"ok"`
	Quick   bool        `json:"quick"`
	Bytes   int64       `json:"bytes"`            // checked
	Digest  string      `json:"digest,omitempty"` // of the content, if it is right
	Code    format.Code `json:"code,omitempty"`   // the rest says what is wrong
	Section string      `json:"section,omitempty"`
	Offset  *int64      `json:"offset,omitempty"`
	Error   string      `json:"error,omitempty"`
}

func verify(ctx context.Context, path string, quick bool) (*verification, error) {
	v := &verification{Schema: jsonSchema, File: path, Quick: quick}
	s, err := openStore(path)
	if err != nil {
		return v, err
	}
	defer s.Close()
	if quick {
		err = s.Warning()
		v.Bytes = structureBytes(s)
	} else {
		err = s.Verify(ctx)
		v.Bytes = s.Meta().Newest.End
	}
	if err != nil {
		v.Bytes = 0
		return v, err
	}
	digest := s.Meta().Digest
	v.OK, v.Digest = true, hex.EncodeToString(digest[:])
	return v, nil
}

// structureBytes returns the bytes that opening checks: slots, catalog and the sections it decodes.
func structureBytes(s *reader.Store) int64 {
	m := s.Meta()
	n := 2*int64(format.SlotSize) + m.Newest.CatalogLength
	for _, tag := range []string{
		format.TagSchema, format.TagTickers, format.TagCalendars, format.TagBlocks, format.TagIndex, format.TagDigest,
		format.TagCategories, format.TagAttributes,
	} {
		if sec := m.Section(tag); sec != nil {
			n += sec.Length
		}
	}
	return n
}
