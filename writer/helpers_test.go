package writer_test

import (
	"context"
	"errors"
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
	"github.com/wstore/wstore/writer"
)

// ticker gives the writer a ticker's rows; cut says after which rows one Append ends and the next begins.
func ticker(w *writer.Writer, c *craft.Content, t *oracle.Ticker, cut func(row int) bool) error {
	if err := w.Begin(t.Name); err != nil {
		return err
	}
	from := 0
	for to := 1; to <= len(t.Times); to++ {
		ends := to == len(t.Times) || cut(to)
		for set, b := range c.Schema.Breaks {
			// A break stands before a piece.
			ends = ends || b.Kind != format.BreakGap && slices.Contains(t.Breaks[set], int64(to))
		}
		if !ends {
			continue
		}
		for set, b := range c.Schema.Breaks {
			if b.Kind != format.BreakGap && slices.Contains(t.Breaks[set], int64(from)) {
				if err := w.Break(set); err != nil {
					return err
				}
			}
		}
		if err := w.Append(t.Times[from:to], cells(c.Schema, t, from, to)); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// options returns those with which a writer writes the content.
func options(c *craft.Content) *writer.Options {
	o := &writer.Options{Align: 1 << c.AlignLog2, Categories: c.Categories}
	for name, a := range c.ByTicker() {
		o.Attributes = append(o.Attributes, writer.Attribute{Name: name, Texts: a.Texts, Numbers: a.Numbers})
	}
	return o
}

// cells returns the rows [from, to) of a ticker.
func cells(s *format.Schema, t *oracle.Ticker, from, to int) (all []writer.Cells) {
	column := 0
	for _, g := range s.Groups {
		var c writer.Cells
		if g.DType == format.Int64 {
			c.I64 = t.Ends[column][from:to]
		} else {
			for r := from; r < to; r++ {
				for k := range g.Columns {
					c.F32 = append(c.F32, t.Cells[column+k][r])
				}
			}
		}
		all = append(all, c)
		column += len(g.Columns)
	}
	return all
}

// whole never cuts.
func whole(int) bool { return false }

// write writes all tickers in their order.
func write(path string, c *craft.Content, o *writer.Options) error {
	w, err := writer.Create(path, c.Schema, o)
	if err != nil {
		return err
	}
	for i := range c.Tickers {
		if err := ticker(w, c, &c.Tickers[i], whole); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	return w.Finish(context.Background(), c.Provenance)
}

// bigPanel is a panel with blocks of several chunks, shared and own calendars, missing cells and breaks.
func bigPanel() *craft.Content {
	s := &format.Schema{
		Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}, {Name: "z"}}},
			{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "end", Role: format.LabelEnd}}},
		},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 9}, {Name: "given", Kind: format.BreakGiven}},
	}
	c := &craft.Content{Schema: s, AlignLog2: 12}
	for i, name := range []string{"A", "B", "C", "D"} {
		t := oracle.Ticker{Name: name, Cells: make([][]float32, 4), Ends: make([][]int64, 4)}
		if name != "C" {
			for r := range 9000 + 1000*(i%2) {
				t.Times = append(t.Times, int64(r+r/1000*10))
			}
		}
		for r := range t.Times {
			v := float32(i*100_000 + r)
			if r%997 == 0 {
				v = float32(math.NaN())
			}
			for k := range 3 {
				t.Cells[k] = append(t.Cells[k], v+float32(k))
			}
			t.Ends[3] = append(t.Ends[3], t.Times[r]+3)
		}
		t.Breaks = [][]int64{oracle.Gaps(t.Times, 9), nil}
		if name == "B" {
			t.Breaks[1] = []int64{4, 5, 8000}
		}
		c.Tickers = append(c.Tickers, t)
	}
	return c
}

// files returns the names in a directory.
func files(t require.TestingT, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t require.TestingT, path string) []byte {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// tempDir returns a new directory for one case of a property.
func tempDir(t *rapid.T, parent string) string {
	dir, err := os.MkdirTemp(parent, "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// create starts a writer of one group of columns x and y and one given break set.
func create(t *testing.T, o *writer.Options) (*writer.Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.wst")
	w, err := writer.Create(path, &format.Schema{
		Groups: []format.Group{{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}}}},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 5}, {Name: "session", Kind: format.BreakGiven}},
	}, o)
	require.NoError(t, err)
	return w, path
}
