package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// states writes a store with categories, attributes, missing cells and breaks.
func states(t *testing.T) string {
	schema := &format.Schema{
		Unit: format.Second, Zone: "Europe/Berlin",
		Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "state"}, {Name: "none"}}},
		},
		Breaks: []format.BreakSet{{Name: "s", Kind: format.BreakColumn, Source: "session"}},
	}
	path := filepath.Join(t.TempDir(), "states.wst")
	w, err := writer.Create(path, schema, &writer.Options{
		Categories: map[string][]string{"state": {"NA", "halt, not open", "open"}, "none": {}},
		Attributes: []writer.Attribute{
			{Name: "sector", Texts: map[string]string{"A": "Energy", "C": "Kleber & Söhne"}},
			{Name: "born", Numbers: map[string]float64{"B": 1e300, "C": 0.1}},
		},
	})
	require.NoError(t, err)
	nan := format.Missing()
	for k, name := range []string{"A", "B", "C"} {
		require.NoError(t, w.Begin(name))
		if k == 1 {
			continue // no rows
		}
		for i := range 3000 { // more than one batch of the fewest rows
			if i%7 == 3 {
				require.NoError(t, w.Break(0))
			}
			cells := []float32{float32(i) / 3, float32(i % 3), nan}
			if i%5 == 0 {
				cells[0], cells[1] = nan, nan
			}
			require.NoError(t, w.Append([]int64{int64(i) * 60}, []writer.Cells{{F32: cells}}))
		}
	}
	require.NoError(t, w.Finish(t.Context(), nil))
	return path
}

// cell is what a table holds in one place, in a form to compare: text, bits of a number, or nil.
type cell any

// expected returns the rows that a table of all of a store has; times are multiplied by scale.
func expected(t *testing.T, path string, scale int64) (out [][]cell) {
	s, err := reader.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	m := s.Meta()
	for ticker, name := range s.Tickers() {
		times, err := v.Times(ticker)
		require.NoError(t, err)
		for row, at := range times {
			line := []cell{name, at * scale}
			for g, group := range m.Schema.Groups {
				for i, c := range group.Columns {
					if group.DType == format.Int64 {
						ends, err := v.LabelEnds(ticker, g)
						require.NoError(t, err)
						if ends[row] == format.NoTime {
							line = append(line, nil)
						} else {
							line = append(line, ends[row]*scale)
						}
						continue
					}
					cells, err := v.Series(ticker, g)
					require.NoError(t, err)
					texts, err := s.Categories(c.Name)
					require.NoError(t, err)
					switch x := cells[row*len(group.Columns)+i]; {
					case format.IsMissing(x):
						line = append(line, nil)
					case texts != nil:
						line = append(line, texts[int(x)])
					default:
						line = append(line, math.Float32bits(x))
					}
				}
			}
			for set, b := range m.Schema.Breaks {
				if b.Kind == format.BreakGap {
					continue
				}
				n := int32(0)
				for _, use := range m.Index.Breaks[set] {
					if use.Ticker == ticker {
						for _, r := range m.Index.BreakLists[use.List] {
							if r <= int64(row) {
								n++
							}
						}
					}
				}
				line = append(line, n)
			}
			out = append(out, line)
		}
	}
	return out
}

// arrowRows returns the rows of a batch.
func arrowRows(t *testing.T, rec arrow.RecordBatch) (out [][]cell) {
	for row := range int(rec.NumRows()) {
		var line []cell
		for _, c := range rec.Columns() {
			if c.IsNull(row) {
				line = append(line, nil)
				continue
			}
			switch c := c.(type) {
			case *array.Dictionary:
				line = append(line, c.Dictionary().(*array.String).Value(c.GetValueIndex(row)))
			case *array.Timestamp:
				line = append(line, int64(c.Value(row)))
			case *array.Float32:
				line = append(line, math.Float32bits(c.Value(row)))
			case *array.Int32:
				line = append(line, c.Value(row))
			default:
				require.Fail(t, "an array of another type", "%s", c.DataType())
			}
		}
		out = append(out, line)
	}
	return out
}

// parquetColumn returns the values of a column of a row group.
func parquetColumn(t *testing.T, group *file.RowGroupReader, i int) (out []cell) {
	c, err := group.Column(i)
	require.NoError(t, err)
	n := group.NumRows()
	levels := make([]int16, n)
	var present []cell
	switch c := c.(type) {
	case *file.ByteArrayColumnChunkReader:
		present = values(t, c.ReadBatch, n, levels, func(v parquet.ByteArray) cell { return string(v) })
	case *file.Int64ColumnChunkReader:
		present = values(t, c.ReadBatch, n, levels, func(v int64) cell { return v })
	case *file.Int32ColumnChunkReader:
		present = values(t, c.ReadBatch, n, levels, func(v int32) cell { return v })
	case *file.Float32ColumnChunkReader:
		present = values(t, c.ReadBatch, n, levels, func(v float32) cell { return math.Float32bits(v) })
	default:
		require.Fail(t, "a column of another type")
	}
	for _, level := range levels {
		if level < c.Descriptor().MaxDefinitionLevel() {
			out = append(out, nil)
		} else {
			out, present = append(out, present[0]), present[1:]
		}
	}
	return out
}

func values[T any](t *testing.T, read func(int64, []T, []int16, []int16) (int64, int, error), n int64, levels []int16, as func(T) cell) (out []cell) {
	for at := int64(0); at < n; {
		buf := make([]T, n-at)
		rows, got, err := read(n-at, buf, levels[at:], nil)
		require.NoError(t, err)
		require.Positive(t, rows)
		for _, v := range buf[:got] {
			out = append(out, as(v))
		}
		at += rows
	}
	return out
}

// parquetRows returns the rows of a file, and its metadata.
func parquetRows(t *testing.T, path string) (out [][]cell, meta string) {
	r, err := file.OpenParquetFile(path, false)
	require.NoError(t, err)
	defer r.Close()
	for g := range r.NumRowGroups() {
		first := len(out)
		for i := range r.MetaData().Schema.NumColumns() {
			for row, v := range parquetColumn(t, r.RowGroup(g), i) {
				if i == 0 {
					out = append(out, nil)
				}
				out[first+row] = append(out[first+row], v)
			}
		}
	}
	return out, *r.MetaData().KeyValueMetadata().FindValue(metaKey)
}

func TestTablesHoldTheRows(t *testing.T) {
	stores := map[string]string{"states": states(t)}
	for _, kind := range []string{"daily", "odd", "nanos", "empty"} {
		stores[kind] = write(t, kind)
	}
	for kind, path := range stores {
		t.Run(kind, func(t *testing.T) {
			s, err := reader.Open(path, nil)
			require.NoError(t, err)
			defer s.Close()
			unit := s.Meta().Schema.Unit
			dir := t.TempDir()
			for _, name := range []string{"t.arrow", "t.arrows", "t.parquet"} {
				code, stderr := try(t.Context(), t, "export", path, "-o", filepath.Join(dir, name))
				require.Zero(t, code, stderr)
			}
			want := expected(t, path, 1)

			f, err := os.Open(filepath.Join(dir, "t.arrow"))
			require.NoError(t, err)
			defer f.Close()
			r, err := ipc.NewFileReader(f)
			require.NoError(t, err)
			var got [][]cell
			for i := range r.NumRecords() {
				rec, err := r.RecordBatchAt(i)
				require.NoError(t, err)
				got = append(got, arrowRows(t, rec)...)
			}
			require.Equal(t, want, got)
			times := r.Schema().Field(1).Type.(*arrow.TimestampType)
			require.Equal(t, unit.String(), times.Unit.String())
			require.Equal(t, s.Meta().Schema.Zone, times.TimeZone)
			meta, _ := r.Schema().Metadata().GetValue(metaKey)

			stream, err := os.Open(filepath.Join(dir, "t.arrows"))
			require.NoError(t, err)
			defer stream.Close()
			sr, err := ipc.NewReader(stream)
			require.NoError(t, err)
			got = nil
			for sr.Next() {
				got = append(got, arrowRows(t, sr.RecordBatch())...)
			}
			require.NoError(t, sr.Err())
			require.Equal(t, want, got)

			scale := int64(1)
			if unit == format.Second {
				scale = 1000
			}
			rows, stored := parquetRows(t, filepath.Join(dir, "t.parquet"))
			require.Equal(t, expected(t, path, scale), rows)
			require.Equal(t, meta, stored)
		})
	}
}

func TestParquetHasRowGroupsAndStatistics(t *testing.T) {
	out := filepath.Join(t.TempDir(), "big.parquet")
	code, stderr := try(t.Context(), t, "export", write(t, "big"), "-o", out)
	require.Zero(t, code, stderr)
	r, err := file.OpenParquetFile(out, false)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, 2, r.NumRowGroups())
	n := 0
	for g := range r.NumRowGroups() {
		chunk, err := r.RowGroup(g).MetaData().ColumnChunk(2)
		require.NoError(t, err)
		statistics, err := chunk.Statistics()
		require.NoError(t, err)
		require.True(t, statistics.HasMinMax())
		for _, v := range parquetColumn(t, r.RowGroup(g), 2) {
			if v != math.Float32bits(float32(n)/7) {
				require.Fail(t, "another cell", "row %d", n)
			}
			n++
		}
	}
	require.Equal(t, 300_000, n)
}

func TestBatchesDontDependOnTheirSize(t *testing.T) {
	for _, path := range []string{states(t), write(t, "odd")} {
		s, err := reader.Open(path, nil)
		require.NoError(t, err)
		defer s.Close()
		v, err := s.View()
		require.NoError(t, err)
		defer v.Release()
		p, err := selectRows(s, v, nil, "", "")
		require.NoError(t, err)
		table, err := p.newTable("Arrow", s.Meta().Schema.Unit)
		require.NoError(t, err)
		want := expected(t, path, 1)
		for _, most := range []int{1, 3, 64, 1000, 1 << 20} {
			if most == 1 && len(want) > 100 {
				continue
			}
			var got [][]cell
			for rec, err := range table.batches(t.Context(), most, 1) {
				require.NoError(t, err)
				require.LessOrEqual(t, rec.NumRows(), int64(most))
				got = append(got, arrowRows(t, rec)...)
			}
			require.Equal(t, want, got, most)
		}
	}
}

func TestTableSaysWhatColumnsDont(t *testing.T) {
	out := filepath.Join(t.TempDir(), "t.parquet")
	code, stderr := try(t.Context(), t, "export", states(t), "-o", out, "--tickers", "B,C")
	require.Zero(t, code, stderr)
	_, meta := parquetRows(t, out)
	require.Equal(t, `{"schema":1,"unit":"s","zone":"Europe/Berlin","ticker":"ticker","time":"time","groups":[{"name":"features",`+
		`"columns":[{"name":"x","role":"value"},{"name":"state","role":"value","categories":true},{"name":"none","role":"value","categories":true}]}],`+
		`"breaks":[{"name":"s","kind":"column","source":"session","column":"session"}],"empty_tickers":["B"],"attributes":[`+
		`{"name":"born","kind":"number","values":{"B":1e+300,"C":0.1}},{"name":"sector","kind":"text","values":{"C":"Kleber & Söhne"}}]}`, meta)
}

func TestCategoriesAreTexts(t *testing.T) {
	path := states(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "t.csv")
	code, stderr := try(t.Context(), t, "export", path, "-o", out, "--tickers", "C", "--to", "1970-01-01 00:05")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "attributes of tickers can't be said in CSV: born, sector")
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, `ticker,time,x,state,none,session
C,1970-01-01T00:00:00Z,,,,0
C,1970-01-01T00:01:00Z,0.33333334,"halt, not open",,0
C,1970-01-01T00:02:00Z,0.6666667,open,,0
C,1970-01-01T00:03:00Z,1,NA,,1
C,1970-01-01T00:04:00Z,1.3333334,"halt, not open",,1
`, string(b))

	code, stderr = try(t.Context(), t, "export", path, "--format", "npy", "-o", filepath.Join(dir, "arrays"))
	require.Zero(t, code, stderr)
	b, err = os.ReadFile(filepath.Join(dir, "arrays", metaFile))
	require.NoError(t, err)
	var meta npyMeta
	require.NoError(t, json.Unmarshal(b, &meta))
	require.Equal(t, map[string][]string{"state": {"NA", "halt, not open", "open"}, "none": {}}, meta.Categories)
	require.Equal(t, "born", meta.Attributes[0].Name)
}

// A damaged cell can stand for no category; --no-verify must not make a text of it.
func TestCellWithoutCategory(t *testing.T) {
	path := states(t)
	s, err := reader.Open(path, nil)
	require.NoError(t, err)
	at := s.Meta().Blocks.Offset[0] + 4*(3*1+1) // row 1, column state
	require.NoError(t, s.Close())
	for _, v := range []float32{3, -1, 0.5, 1e30} {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		binary.LittleEndian.PutUint32(b[at:], math.Float32bits(v))
		damaged := filepath.Join(t.TempDir(), "d.wst")
		require.NoError(t, os.WriteFile(damaged, b, 0o600))
		for _, name := range []string{"t.csv", "t.parquet", "t.arrow"} {
			out := filepath.Join(t.TempDir(), name)
			code, stderr := try(t.Context(), t, "export", damaged, "--no-verify", "-o", out)
			require.Equal(t, exitUnusable, code, stderr)
			require.Contains(t, stderr, `ticker "A" has the cell`)
			require.NoFileExists(t, out)
		}
	}
}

func TestInterruptedTableLeavesNothing(t *testing.T) {
	path := write(t, "big")
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"t.parquet", "t.arrow", "t.arrows"} {
		code, stderr := try(ctx, t, "export", path, "--no-verify", "-o", filepath.Join(dir, name))
		require.Equal(t, exitInterrupted, code, stderr)
		require.True(t, strings.HasSuffix(stderr, "wstore: interrupted\n"), stderr)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// full is a writer on which there is no room after some bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

func TestErrorOfWritingIsTold(t *testing.T) {
	s, err := reader.Open(write(t, "big"), nil)
	require.NoError(t, err)
	defer s.Close()
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	p, err := selectRows(s, v, nil, "", "")
	require.NoError(t, err)
	var whole bytes.Buffer
	require.NoError(t, p.writeParquet(t.Context(), &whole))
	for _, left := range []int{0, 3, 4, 100, whole.Len() / 2, whole.Len() - 100, whole.Len() - 1} {
		require.ErrorIs(t, p.writeParquet(t.Context(), &full{left}), os.ErrDeadlineExceeded, left)
	}
	for _, left := range []int{0, 10, 100, 1 << 20} {
		require.ErrorIs(t, p.writeArrow(t.Context(), &full{left}, true), os.ErrDeadlineExceeded, left)
		require.ErrorIs(t, p.writeArrow(t.Context(), &full{left}, false), os.ErrDeadlineExceeded, left)
	}
}

func TestTableNamesAreFree(t *testing.T) {
	s := &format.Schema{
		Groups: []format.Group{{Columns: []format.Column{{Name: "time"}, {Name: "time_"}, {Name: "src"}, {Name: "mine"}}}},
		Breaks: []format.BreakSet{
			{Name: "a", Kind: format.BreakColumn, Source: "src"}, {Name: "gap", Kind: format.BreakGap},
			{Name: "mine", Kind: format.BreakGiven}, {Name: "b", Kind: format.BreakColumn, Source: "sess"},
			{Name: "c", Kind: format.BreakColumn, Source: "sess"}, {Name: "ticker", Kind: format.BreakGiven},
		},
	}
	require.Equal(t, tableNames{"ticker", "time__", []string{"a", "", "mine_", "sess", "c", "ticker_"}}, namesFor(s))
}

func TestDeviceNamesAreNoFiles(t *testing.T) {
	names := []string{"CON", "nul.x", "com1", "LPT9.a.b", "console", "con_", "a."}
	groups := make([]format.Group, len(names))
	for i, n := range names {
		groups[i].Name = n
	}
	require.Equal(t, []string{"group0.npy", "group1.npy", "group2.npy", "group3.npy", "console.npy", "con_.npy", "a..npy"}, arrayFiles(groups))
}
