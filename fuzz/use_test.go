package fuzz

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// vectors returns the files of the specification whose names match.
func vectors(tb testing.TB, pattern string) map[string][]byte {
	paths, err := filepath.Glob(filepath.Join("..", "spec", "vectors", pattern))
	require.NoError(tb, err)
	require.NotEmpty(tb, paths)
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		require.NoError(tb, err)
		files[filepath.Base(p)] = b
	}
	return files
}

// requireKnown fails unless the error is one that a file can be blamed for.
func requireKnown(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var code format.Code
	require.ErrorAs(t, err, &code)
	require.Contains(t, format.Codes(), code)
	require.True(t, errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrUnsupported), "%v", err)
}

// allocated returns the bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// useAll opens a file and does with it all that a reader can. It reports whether it passed verification.
func useAll(t *testing.T, b []byte) (verified bool) {
	var s *reader.Store
	var err error
	n := allocated(func() { s, err = reader.OpenBytes(b, nil) })
	require.LessOrEqual(t, n, int64(64<<10+64*len(b)), "bytes allocated to open %d", len(b))
	requireKnown(t, err)
	if err != nil {
		return false
	}
	n = allocated(func() { verified = use(t, s) })
	require.LessOrEqual(t, n, int64(2<<20+1024*len(b)), "bytes allocated to use %d", len(b))
	require.NoError(t, s.Close())
	return verified
}

func use(t *testing.T, s *reader.Store) (verified bool) {
	err := s.Verify(context.Background())
	requireKnown(t, err)
	_, provenanceErr := s.Provenance()
	requireKnown(t, provenanceErr)
	requireKnown(t, s.Warning())
	v, viewErr := s.View()
	require.NoError(t, viewErr)
	defer v.Release()
	for i := range s.Tickers() {
		times, timesErr := v.Times(i)
		require.NoError(t, timesErr)
		require.Len(t, times, int(s.Rows(i)))
		for g, group := range s.Meta().Schema.Groups {
			if group.DType == format.Int64 {
				cells, cellsErr := v.LabelEnds(i, g)
				require.NoError(t, cellsErr)
				require.Len(t, cells, int(s.Rows(i)))
				continue
			}
			cells, cellsErr := v.Series(i, g)
			require.NoError(t, cellsErr)
			require.Len(t, cells, int(s.Rows(i))*len(group.Columns))
		}
	}
	for _, g := range s.Meta().Schema.Groups {
		for _, c := range g.Columns {
			_, categoriesErr := s.Categories(c.Name)
			require.NoError(t, categoriesErr)
		}
	}
	for _, a := range s.Attributes() {
		for i := range s.Tickers() {
			_, ok := a.Text(i)
			require.False(t, ok && !math.IsNaN(a.Number(i)))
		}
	}
	for _, q := range queries(s) {
		useWindows(t, s, q)
	}
	return err == nil
}

// queries returns valid queries of a store: of all columns, of one group, with everything optional, and filtered.
func queries(s *reader.Store) []reader.Query {
	var groups, columns []string
	for _, g := range s.Meta().Schema.Groups {
		if g.DType != format.Float32 {
			continue
		}
		groups = append(groups, g.Name)
		for _, c := range g.Columns {
			columns = append(columns, c.Name)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	last := columns[len(columns)-1:]
	none := []string{}
	q := []reader.Query{
		{Inputs: groups[:1], Targets: none, Lookback: 1},
		{Inputs: columns[:1], Targets: last, Lookback: 3, Horizons: []int{-2, 1, 2}, TargetLength: 2, Stride: 2},
		{Inputs: last, Targets: none, Lookback: 2, Where: columns[:1], Breaks: none},
		{Inputs: columns[:min(len(columns), 20)], Targets: groups[:1], Optional: columns[:1], Lookback: 2, Horizons: []int{0}},
		{Inputs: groups[:1], Targets: last, Lookback: 1 << 20},
	}
	if names := s.Tickers(); len(names) > 0 && s.Meta().Schema.Unit == format.Nanosecond {
		q = append(q, reader.Query{
			Inputs: columns[:1], Targets: none, Lookback: 1, Tickers: names[len(names)/2:], From: time.Unix(-1, 0), To: time.Unix(1, 0),
			At: []time.Time{time.Unix(0, math.MinInt64), time.Unix(0, -1), time.Unix(0, 1)},
		})
	}
	return q
}

func useWindows(t *testing.T, s *reader.Store, q reader.Query) {
	w, err := s.Windows(q)
	require.NoError(t, err)
	n := w.Len()
	v, err := w.View()
	if err != nil {
		require.ErrorIs(t, err, reader.ErrSpans)
	} else {
		defer v.Release()
	}
	sum := float32(0)
	for i := range n {
		p := w.Locate(i)
		require.True(t, p.First >= 0 && p.First <= p.Anchor && p.Anchor < s.Rows(p.Ticker))
		if v != nil {
			x, y := v.At(i)
			sum += x[0] + x[len(x)-1]
			if len(y) > 0 {
				sum += y[0] + y[len(y)-1]
			}
		}
	}
	var ids []int
	for i := 0; i < n; i += 1 + n/16 {
		ids = append(ids, i)
	}
	in, out := w.Inputs(), w.Targets()
	require.NoError(t, w.Gather(ids, make([]float32, len(ids)*in.Size()), make([]float32, len(ids)*out.Size())))
	runtime.KeepAlive(sum)
}

// panelOf reads a store back as the oracle has it.
func panelOf(t *testing.T, s *reader.Store) *oracle.Panel {
	m := s.Meta()
	p := &oracle.Panel{}
	for _, g := range m.Schema.Groups {
		group := oracle.Group{Name: g.Name, LabelEnd: g.DType == format.Int64}
		for _, c := range g.Columns {
			group.Columns = append(group.Columns, oracle.Column{Name: c.Name, Mask: c.Role == format.Mask})
		}
		p.Groups = append(p.Groups, group)
	}
	for _, b := range m.Schema.Breaks {
		p.BreakSets = append(p.BreakSets, oracle.BreakSet{Name: b.Name, MaxGap: b.MaxGap})
	}
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	for i, name := range s.Tickers() {
		tk := oracle.Ticker{Name: name, Breaks: make([][]int64, len(m.Schema.Breaks))}
		times, err := v.Times(i)
		require.NoError(t, err)
		tk.Times = slices.Clone(times)
		for g, group := range m.Schema.Groups {
			if group.DType == format.Int64 {
				ends, err := v.LabelEnds(i, g)
				require.NoError(t, err)
				tk.Cells, tk.Ends = append(tk.Cells, nil), append(tk.Ends, slices.Clone(ends))
				continue
			}
			rows, err := v.Series(i, g)
			require.NoError(t, err)
			for c := range group.Columns {
				var cells []float32
				for r := c; r < len(rows); r += len(group.Columns) {
					cells = append(cells, rows[r])
				}
				tk.Cells, tk.Ends = append(tk.Cells, cells), append(tk.Ends, nil)
			}
		}
		for set, uses := range m.Index.Breaks {
			for _, u := range uses {
				if u.Ticker == i {
					tk.Breaks[set] = m.Index.BreakLists[u.List]
				}
			}
		}
		p.Tickers = append(p.Tickers, tk)
	}
	return p
}

// requireWindows compares the windows of a query, and all their cells, with the oracle's.
func requireWindows(t require.TestingT, s *reader.Store, p *oracle.Panel, q oracle.Query) {
	want, err := oracle.Windows(p, q)
	require.NoError(t, err)
	rq := reader.Query{
		Inputs: q.Inputs, Targets: q.Targets, Optional: q.Optional, Lookback: int(q.Lookback), TargetLength: int(q.TargetLength),
		Stride: int(q.Stride), Breaks: q.Breaks, Tickers: q.Tickers, Where: q.Where,
	}
	unit := s.Meta().Schema.Unit
	for _, h := range q.Horizons {
		rq.Horizons = append(rq.Horizons, int(h))
	}
	if q.At != nil {
		rq.At = []time.Time{}
	}
	for _, v := range q.At {
		rq.At = append(rq.At, unit.Time(v))
	}
	if q.From != nil {
		rq.From = unit.Time(*q.From)
	}
	if q.To != nil {
		rq.To = unit.Time(*q.To)
	}
	w, err := s.Windows(rq)
	require.NoError(t, err)
	require.Equal(t, len(want), w.Len())
	for i, o := range want {
		require.Equal(t, reader.Pos{Ticker: o.Ticker, First: o.Anchor - q.Lookback + 1, Anchor: o.Anchor}, w.Locate(i))
		x, y := make([]float32, len(o.Inputs)), make([]float32, len(o.Targets))
		require.NoError(t, w.Gather([]int{i}, x, y))
		requireBits(t, o.Inputs, x)
		requireBits(t, o.Targets, y)
	}
}

func requireBits(t require.TestingT, want []uint32, got []float32) {
	for k, b := range want {
		if math.Float32bits(got[k]) != b {
			require.Equal(t, b, math.Float32bits(got[k]), "cell %d", k)
		}
	}
}
