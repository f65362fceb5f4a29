package fuzz

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/fsys"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// FuzzOpen takes any bytes for a file. Most of a small file is the zeros behind slot 0: of a sparse one they are left out.
func FuzzOpen(f *testing.F) {
	for _, b := range vectors(f, "*.wst") {
		if len(b) > 12<<10 {
			continue
		}
		if sparse, ok := craft.Sparse(b); ok || len(b) < 1<<10 {
			f.Add(sparse, ok)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, sparse bool) {
		if sparse {
			b = craft.Dense(b)
		}
		useAll(t, b)
	})
}

// FuzzFixup edits valid files and makes their checksums right again, so that what stands behind the checksums is
// reached. The windows of what passes verification are those of the oracle.
func FuzzFixup(f *testing.F) {
	var files [][]byte
	all := vectors(f, "*.wst")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		if s, err := reader.OpenBytes(b, &reader.Options{Verify: true}); err == nil && len(b) < 12<<10 {
			require.NoError(f, s.Close())
			files = append(files, b)
		}
	}
	for i := range files {
		for kind := range 9 {
			f.Add([]byte{byte(i), 2, 0, byte(3 * kind), byte(kind), 1, 2, 1, 9, byte(kind), 3})
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		b := craft.Mutate(files, input)
		if !useAll(t, b) {
			return
		}
		s, err := reader.OpenBytes(b, nil)
		require.NoError(t, err)
		panel := panelOf(t, s)
		rows := 0
		for _, tk := range panel.Tickers {
			rows += len(tk.Times)
		}
		if rows > 300 {
			return
		}
		for _, q := range queries(s) {
			if q.At != nil {
				continue
			}
			var horizons []int64
			for _, h := range q.Horizons {
				horizons = append(horizons, int64(h))
			}
			requireWindows(t, s, panel, oracle.Query{
				Inputs: q.Inputs, Targets: q.Targets, Optional: q.Optional, Lookback: int64(q.Lookback), Horizons: horizons,
				TargetLength: int64(q.TargetLength), Stride: int64(q.Stride), Breaks: q.Breaks, Where: q.Where,
			})
		}
	})
}

// FuzzIndex takes any bytes for a window index: what is accepted is the only encoding of what it says.
func FuzzIndex(f *testing.F) {
	for _, pattern := range []string{"widx-*.wst", "base.wst", "breaks.wst", "missing.wst"} {
		for _, b := range vectors(f, pattern) {
			f.Add(craft.Split(b).Section("WIDX").Bytes, []byte{8, 0, 4, 5}, byte(3))
		}
	}
	f.Fuzz(func(t *testing.T, b, rows []byte, sets byte) {
		s := &format.Schema{Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}}},
			{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "e", Role: format.LabelEnd}}},
			{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "m", Role: format.Mask}}},
		}}
		for range sets % 8 {
			s.Breaks = append(s.Breaks, format.BreakSet{Kind: format.BreakGiven})
		}
		tk := &format.Tickers{}
		for _, n := range rows {
			tk.Names, tk.Rows = append(tk.Names, ""), append(tk.Rows, int64(n))
		}
		var ix *format.Index
		var err error
		n := allocated(func() { ix, err = format.DecodeIndex(b, 0, tk, s) })
		require.LessOrEqual(t, n, int64(64<<10+128*(len(b)+len(rows))), "bytes allocated to decode %d", len(b))
		if err != nil {
			require.ErrorIs(t, err, format.SectionInvalid)
			return
		}
		require.Equal(t, b, format.AppendIndex(nil, ix))
	})
}

// FuzzLabels takes any bytes for categories, or for attributes of some tickers: what is accepted is the only encoding of
// what it says.
func FuzzLabels(f *testing.F) {
	for _, pattern := range []string{"cats-*.wst", "stat-*.wst", "categories.wst", "attributes*.wst", "labels.wst"} {
		for _, b := range vectors(f, pattern) {
			for _, s := range craft.Split(b).Sections {
				if s.Tag == format.TagCategories || s.Tag == format.TagAttributes {
					f.Add(s.Bytes, byte(len(s.Bytes)%5))
				}
			}
		}
	}
	schema := &format.Schema{Groups: []format.Group{
		{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}}},
		{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "e", Role: format.LabelEnd}}},
		{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "m", Role: format.Mask}, {Name: "z"}}},
	}}
	f.Fuzz(func(t *testing.T, b []byte, tickers byte) {
		var d []format.Dictionary
		var a []*format.Attribute
		var err, err2 error
		n := allocated(func() {
			d, err = format.DecodeCategories(b, 0, schema)
			a, err2 = format.DecodeAttributes(b, 0, int(tickers))
		})
		require.LessOrEqual(t, n, int64(64<<10+64*len(b)), "bytes allocated to decode %d", len(b))
		if err == nil {
			require.Equal(t, b, format.AppendCategories(nil, d))
		} else {
			require.ErrorIs(t, err, format.SectionInvalid)
		}
		if err2 == nil {
			require.Equal(t, b, format.AppendAttributes(nil, a))
		} else {
			require.ErrorIs(t, err2, format.SectionInvalid)
		}
	})
}

// FuzzCSV reads any bytes as a CSV file: rows or an error, the same for one and for several goroutines.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"", "\n", "date,close\n", "date,close\n2020-01-02,1.5\n2020-01-03,\n", "\xef\xbb\xbfdate;close\r\n2/1/2020;1,5\r\n13/1/2020;2\r\n",
		"time\tticker\tx\ty\n1577923200\tNA\t1e-45\tinf\n1577923260\t\t-0\tnan\n", "a,b\n\"x\ny\",2\n\"\"\"q\"\"\",3\n", "date,x\n2020-01-02,1,2\n",
		"date,x\n2020-02-30,1\n", "date,x\n2020-01-02,1e39\n", "date,date\n1,2\n", ",x\n0,1\n1,2\n", "date,x\n20200102,16777217\n20200103,0.1\n",
		"date,x\n2020-01-02 09:30:00.5Z,1\n2020-01-02 09:31+01:00,2\n", "date,x\n\"2020-01-02,1\n", "\x1f\x8b\x08\x00", "PAR1", "date,x\n2020-01-02,\xff\n",
		"d,x\n01/02/2020,1\n02/03/2020,2\n", "d,x\nJan 2 2020,1\n3 Feb 2020,2\n", "date,x\n2020-01-02,00000000000000000001.00000000000000000000000000001\n",
		"date,x,m\n2020-01-02,1,true\n2020-01-03,2,FALSE\n", "date,x\n2020-01-02,1\n\n\n2020-01-03,2",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	path := filepath.Join(f.TempDir(), "a.csv")
	f.Fuzz(func(t *testing.T, b []byte, skip bool) {
		require.NoError(t, os.WriteFile(path, b, 0o666))
		require.Equal(t, readAny(t, path, skip, 1), readAny(t, path, skip, 3))
	})
}

// FuzzColumnar reads Parquet and Arrow files that were edited: rows or an error, the same for one and for several
// goroutines. An edit is a place, from the end if it is odd, and bytes to put there.
func FuzzColumnar(f *testing.F) {
	names, err := filepath.Glob("../ingest/testdata/p*.*")
	require.NoError(f, err)
	require.NotEmpty(f, names)
	var files [][]byte
	for i, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		files = append(files, b)
		f.Add(byte(i), uint16(0), []byte{b[0]}, uint16(len(b)-1)<<1|1, []byte{b[0]})
		f.Add(byte(i), uint16(800), []byte{0xff}, uint16(40)<<1|1, []byte{0x7f, 0})
	}
	path := filepath.Join(f.TempDir(), "a")
	f.Fuzz(func(t *testing.T, file byte, at uint16, put []byte, at2 uint16, put2 []byte) {
		b := bytes.Clone(files[int(file)%len(files)])
		for _, e := range []struct {
			at  uint16
			put []byte
		}{{at, put}, {at2, put2}} {
			from := int(e.at>>1) % len(b)
			if e.at&1 == 1 {
				from = len(b) - 1 - from
			}
			copy(b[from:], e.put)
		}
		require.NoError(t, os.WriteFile(path, b, 0o666))
		require.Equal(t, readAny(t, path, false, 1), readAny(t, path, false, 3))
		require.Equal(t, readAny(t, path, true, 1), readAny(t, path, true, 3))
	})
}

// readAny returns all that reading a file gives, as text.
func readAny(t *testing.T, path string, skip bool, jobs int) string {
	var out bytes.Buffer
	sources, _, err := ingest.Sources([]string{path})
	require.NoError(t, err)
	s, err := ingest.NewSurvey(context.Background(), sources, ingest.Options{Jobs: jobs, SkipBad: skip})
	if err != nil {
		return "survey: " + err.Error()
	}
	fmt.Fprintf(&out, "%+v %v\n", s.Columns, s.Blank)
	plan := ingest.Plan{Ticker: -1}
	if plan.Time, err = s.TimeColumn(); err != nil {
		fmt.Fprintf(&out, "time: %v\n", err)
		plan.Time = 0
	}
	for i, c := range s.Columns {
		switch {
		case i == plan.Time:
		case c.Kind == ingest.Float:
			plan.Floats = append(plan.Floats, i)
			plan.Masks = append(plan.Masks, len(plan.Floats)%3 == 0)
		case c.Kind == ingest.Time:
			plan.Times = append(plan.Times, i)
		case plan.Ticker < 0:
			plan.Ticker = i
		default:
			plan.Texts = append(plan.Texts, i)
		}
	}
	stats, err := s.Read(context.Background(), plan, func(b *ingest.Batch) error {
		require.NotZero(t, b.Rows)
		require.Len(t, b.Times, b.Rows)
		require.Len(t, b.Cells, b.Rows*len(plan.Floats))
		for r := range b.Rows {
			fmt.Fprintf(&out, "%d %q %d", b.Line[r], b.Dict[b.Tickers[r]], b.Times[r])
			for _, v := range b.Cells[r*len(plan.Floats):][:len(plan.Floats)] {
				if format.IsMissing(v) {
					require.Equal(t, uint32(format.MissingBits), math.Float32bits(v))
				}
				fmt.Fprintf(&out, " %08x", math.Float32bits(v))
			}
			fmt.Fprintln(&out, b.Stamps[r*len(plan.Times):][:len(plan.Times)])
			for _, v := range b.Texts[r*len(plan.Texts):][:len(plan.Texts)] {
				fmt.Fprintf(&out, " %q", b.Dict[v])
			}
		}
		return nil
	})
	fmt.Fprintf(&out, "%+v %v\n", stats, err)
	return out.String()
}

// noSync is the operating system's file system without waiting for the disk.
type noSync struct{ fsys.OS }

type noSyncFile struct{ fsys.File }

func (noSyncFile) Sync() error { return nil }

func (n noSync) CreateTemp(path string) (fsys.File, error) {
	f, err := n.OS.CreateTemp(path)
	return noSyncFile{f}, err
}

func (noSync) Publish(temp, path string, _ bool) error { return os.Rename(temp, path) }

// FuzzRoundTrip draws a panel and queries. The writer's bytes are those of the other encoder, and the reader's windows
// those of the oracle.
func FuzzRoundTrip(f *testing.F) {
	for i := range 8 {
		f.Add([]byte{byte(i)})
	}
	path := filepath.Join(f.TempDir(), "a.wst")
	check := rapid.MakeFuzz(func(t *rapid.T) { roundTrip(t, path) })
	f.Fuzz(func(t *testing.T, b []byte) {
		// The draws that the input leaves over follow from it, so that short inputs make whole panels.
		r := rand.NewChaCha8(sha256.Sum256(b))
		rest := make([]byte, 64<<10)
		_, _ = r.Read(rest)
		check(t, append(bytes.Clone(b), rest...))
	})
}

// TestRoundTrip is FuzzRoundTrip without a fuzzer.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wst")
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, path) })
}

func roundTrip(t *rapid.T, path string) {
	p := oracle.DrawPanel(t)
	c := craft.FromPanel(p)
	c.AlignLog2 = rapid.SampledFrom([]uint32{6, 7, 12}).Draw(t, "align")
	want := c.Build()
	order := rapid.Permutation(p.Tickers).Draw(t, "order")
	piece := rapid.IntRange(1, 60).Draw(t, "rows at a time")

	o := &writer.Options{Align: 1 << c.AlignLog2, Overwrite: true, FS: noSync{}, Categories: c.Categories}
	for name, a := range c.ByTicker() {
		o.Attributes = append(o.Attributes, writer.Attribute{Name: name, Texts: a.Texts, Numbers: a.Numbers})
	}
	w, err := writer.Create(path, c.Schema, o)
	require.NoError(t, err)
	for i := range order {
		require.NoError(t, writeTicker(w, c.Schema, &order[i], piece))
	}
	require.NoError(t, w.Finish(context.Background(), nil))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "the two encoders differ")

	s, err := reader.OpenBytes(got, nil)
	require.NoError(t, err)
	for range 3 {
		requireWindows(t, s, p, oracle.DrawQuery(t, p))
	}
	require.NoError(t, s.Close())
}

// writeTicker gives a ticker to a writer in pieces, which also end at breaks.
func writeTicker(w *writer.Writer, s *format.Schema, tk *oracle.Ticker, piece int) error {
	if err := w.Begin(tk.Name); err != nil {
		return err
	}
	for from := 0; from < len(tk.Times); {
		to := min(len(tk.Times), from+piece)
		for set, rows := range tk.Breaks {
			if s.Breaks[set].Kind == format.BreakGap {
				continue
			}
			for _, r := range rows {
				if int(r) == from {
					if err := w.Break(set); err != nil {
						return err
					}
				} else if int(r) > from {
					to = min(to, int(r))
				}
			}
		}
		var cells []writer.Cells
		base := 0
		for _, g := range s.Groups {
			var block writer.Cells
			for r := from; r < to; r++ {
				for k := range g.Columns {
					if g.DType == format.Int64 {
						block.I64 = append(block.I64, tk.Ends[base+k][r])
					} else {
						block.F32 = append(block.F32, tk.Cells[base+k][r])
					}
				}
			}
			cells = append(cells, block)
			base += len(g.Columns)
		}
		if err := w.Append(tk.Times[from:to], cells); err != nil {
			return err
		}
		from = to
	}
	return nil
}
