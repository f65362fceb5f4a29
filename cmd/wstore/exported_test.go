package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// usedOnly drops categories that no cell has, which no table shows.
func usedOnly(p *oracle.Panel) {
	n := 0
	for g := range p.Groups {
		for c := range p.Groups[g].Columns {
			column := &p.Groups[g].Columns[c]
			if column.Categories != nil {
				used := make([]bool, len(column.Categories))
				for _, t := range p.Tickers {
					for _, v := range t.Cells[n] {
						if !format.IsMissing(v) {
							used[int(v)] = true
						}
					}
				}
				place, kept := make([]float32, len(used)), []string{}
				for i, yes := range used {
					if place[i] = float32(len(kept)); yes {
						kept = append(kept, column.Categories[i])
					}
				}
				column.Categories = kept
				for _, t := range p.Tickers {
					for i, v := range t.Cells[n] {
						if !format.IsMissing(v) {
							t.Cells[n][i] = place[int(v)]
						}
					}
				}
			}
			n++
		}
	}
}

// convertible reports whether a panel has rows, and no time that nanoseconds can't hold.
func convertible(p *oracle.Panel) bool {
	const most = math.MaxInt64 / 1_000_000_000
	rows := 0
	for _, t := range p.Tickers {
		rows += len(t.Times)
		for i, times := range append(slices.Clone(t.Ends), t.Times) {
			for _, v := range times {
				if v > most || v < -most && (v != format.NoTime || i == len(t.Ends)) { // a row always has a time
					return false
				}
			}
		}
	}
	return rows > 0
}

// vary changes what a panel does not say of its schema.
func vary(r *rapid.T, s *format.Schema) {
	s.Unit = format.Unit(rapid.IntRange(0, 3).Draw(r, "unit"))
	s.Zone = rapid.SampledFrom([]string{"", "UTC", "America/New_York"}).Draw(r, "zone")
	end := -1
	for i, at := range s.Places() {
		if s.Groups[at.Group].DType == format.Int64 {
			end = i
		}
	}
	for g := range s.Groups {
		for c := range s.Groups[g].Columns {
			column := &s.Groups[g].Columns[c]
			if column.Role != format.Value {
				continue
			}
			column.ReachKind = rapid.SampledFrom([]format.ReachKind{format.ReachNone, format.ReachRows, format.ReachDuration, format.ReachColumn}).Draw(r, "reach")
			switch {
			case column.ReachKind == format.ReachColumn && end < 0:
				column.ReachKind = format.ReachNone
			case column.ReachKind == format.ReachColumn:
				column.Reach = int64(end)
			case column.ReachKind != format.ReachNone:
				column.Reach = rapid.Int64Range(0, 9).Draw(r, "how far")
			}
		}
	}
}

// TestExportedTablesComeBack exports panels of every kind as tables, and converts these without any option.
func TestExportedTablesComeBack(t *testing.T) {
	converted := 0
	rapid.Check(t, func(r *rapid.T) {
		p := oracle.DrawPanel(r)
		usedOnly(p)
		if !convertible(p) {
			return
		}
		dir, err := os.MkdirTemp("", "")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "in.wst")
		content := craft.FromPanel(p)
		vary(r, content.Schema)
		require.NoError(t, os.WriteFile(path, content.Build(), 0o666))
		table := filepath.Join(dir, "table."+rapid.SampledFrom([]string{"parquet", "arrow", "arrows"}).Draw(r, "format"))
		code, said := try(t.Context(), t, "export", path, "-o", table)
		require.Zero(t, code, said)
		back := filepath.Join(dir, "back.wst")
		code, said = try(t.Context(), t, "convert", table, "-o", back)
		require.Zero(t, code, said)
		converted++

		var want, got *reader.Store
		for name, s := range map[string]**reader.Store{path: &want, back: &got} {
			*s, err = reader.Open(name, &reader.Options{Access: reader.Read})
			require.NoError(t, err)
			defer (*s).Close()
		}
		require.Equal(t, want.Meta().Schema, got.Meta().Schema)
		require.Equal(t, want.Tickers(), got.Tickers())
		require.Equal(t, want.Meta().Digest, got.Meta().Digest)
	})
	t.Logf("%d tables", converted)
	require.Positive(t, converted)
}
