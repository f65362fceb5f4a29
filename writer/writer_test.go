package writer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/fsys"
	"github.com/wstore/wstore/internal/mmapfile"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// TestOneFileForOneContent writes panels in any order of tickers and in any pieces: the bytes are those of an encoder
// that shares no code with this one, calendars and digest included.
func TestOneFileForOneContent(t *testing.T) {
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := craft.FromPanel(oracle.DrawPanel(t))
		c.AlignLog2 = rapid.SampledFrom([]uint32{6, 12, 16}).Draw(t, "align")
		if rapid.Bool().Draw(t, "provenance?") {
			c.Provenance = []byte(`{"source": "é"}`)
		}
		path := filepath.Join(tempDir(t, parent), "a.wst")
		w, err := writer.Create(path, c.Schema, options(c))
		require.NoError(t, err)
		order := make([]int, len(c.Tickers))
		for i := range order {
			order[i] = i
		}
		cuts := rapid.Uint64().Draw(t, "cuts")
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			require.NoError(t, ticker(w, c, &c.Tickers[i], func(row int) bool { return cuts>>(row%64)&1 != 0 }))
		}
		require.NoError(t, w.Finish(context.Background(), c.Provenance))
		require.Equal(t, c.Build(), read(t, path))
		require.Equal(t, []string{"a.wst"}, files(t, filepath.Dir(path)))
	})
}

func TestBytesDoNotDependOnCores(t *testing.T) {
	c := bigPanel()
	want := c.Build()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		path := filepath.Join(t.TempDir(), "a.wst")
		require.NoError(t, write(path, c, nil))
		require.True(t, slices.Equal(want, read(t, path)), "%d cores", cores)
	}
}

// unmappable is a file system that can't map files.
type unmappable struct{ fsys.OS }

type unmappableFile struct{ fsys.File }

func (u unmappable) CreateTemp(path string) (fsys.File, error) {
	f, err := u.OS.CreateTemp(path)
	return unmappableFile{f}, err
}

func (unmappableFile) Map(int64) (*mmapfile.Map, error) { return nil, errors.ErrUnsupported }

func TestWithoutMapping(t *testing.T) {
	c := bigPanel()
	path := filepath.Join(t.TempDir(), "a.wst")
	require.NoError(t, write(path, c, &writer.Options{FS: unmappable{}}))
	require.True(t, slices.Equal(c.Build(), read(t, path)))
}

// TestCalendars draws many lists of times that share, contain and overlap each other, and compares with the rule of
// section 6, taken word by word.
func TestCalendars(t *testing.T) {
	parent := t.TempDir()
	schema := &format.Schema{Groups: []format.Group{{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}}}}}
	rapid.Check(t, func(t *rapid.T) {
		var lists [][]int64
		base := rapid.SliceOfNDistinct(rapid.Int64Range(0, 60), 2, 30, rapid.ID[int64]).Draw(t, "times")
		slices.Sort(base)
		for range rapid.IntRange(0, 12).Draw(t, "lists") {
			from := rapid.IntRange(0, len(base)-1).Draw(t, "from")
			list := slices.Clone(base[from:rapid.IntRange(from, len(base)).Draw(t, "to")])
			if len(list) > 1 && rapid.Bool().Draw(t, "drop") {
				at := rapid.IntRange(0, len(list)-1).Draw(t, "at")
				list = slices.Delete(list, at, at+1)
			}
			lists = append(lists, list)
		}
		path := filepath.Join(tempDir(t, parent), "a.wst")
		w, err := writer.Create(path, schema, nil)
		require.NoError(t, err)
		for i, list := range lists {
			require.NoError(t, w.Begin(string(rune('A'+i))))
			require.NoError(t, w.Append(list, []writer.Cells{{F32: make([]float32, len(list))}}))
		}
		require.NoError(t, w.Finish(context.Background(), nil))

		find := func(outer, inner []int64) int {
			for at := 0; at+len(inner) <= len(outer); at++ {
				if slices.Equal(outer[at:at+len(inner)], inner) {
					return at
				}
			}
			return -1
		}
		var calendars [][]int64
		for i, list := range lists {
			keep := len(list) > 0
			for j, other := range lists {
				if found := find(other, list) >= 0; found && (len(other) > len(list) || len(other) == len(list) && j < i) {
					keep = false
				}
			}
			if keep {
				calendars = append(calendars, list)
			}
		}
		slices.SortFunc(calendars, func(a, b []int64) int {
			switch {
			case a[0] != b[0]:
				return int(a[0] - b[0])
			case len(a) != len(b):
				return len(b) - len(a)
			}
			return slices.Compare(a, b)
		})

		s, err := reader.Open(path, nil)
		require.NoError(t, err)
		defer s.Close()
		m := s.Meta()
		require.Len(t, m.Calendars.Entries, len(calendars))
		for k, want := range calendars {
			require.EqualValues(t, len(want), m.Calendars.Entries[k])
		}
		v, err := s.View()
		require.NoError(t, err)
		defer v.Release()
		for i, list := range lists {
			times, err := v.Times(i)
			require.NoError(t, err)
			require.True(t, slices.Equal(list, times))
			if len(list) == 0 {
				continue
			}
			k := slices.IndexFunc(calendars, func(c []int64) bool { return find(c, list) >= 0 })
			require.EqualValues(t, k, m.Tickers.Calendar[i])
			require.EqualValues(t, find(calendars[k], list), m.Tickers.First[i])
		}
	})
}

// TestMissingCells checks that NaN and infinite cells are stored as the one missing value, and that the caller's slices
// are not touched.
func TestMissingCells(t *testing.T) {
	w, path := create(t, nil)
	require.NoError(t, w.Begin("A"))
	bits := []uint32{0x7fc00000, 0x7f800000, 0xff800000, 0xffc00001, 0x7f800001, 1 << 31, 1, 0x7f7fffff}
	var given []float32
	for _, b := range bits {
		given = append(given, math.Float32frombits(b))
	}
	require.NoError(t, w.Append([]int64{1, 2, 3, 4}, []writer.Cells{{F32: given}}))
	for i, b := range bits {
		require.Equal(t, b, math.Float32bits(given[i]))
	}
	clear(given) // the slices are the caller's again
	require.NoError(t, w.Finish(context.Background(), nil))

	s, err := reader.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	cells, err := v.Series(0, 0)
	require.NoError(t, err)
	for i, want := range []uint32{0x7fc00000, 0x7fc00000, 0x7fc00000, 0x7fc00000, 0x7fc00000, 1 << 31, 1, 0x7f7fffff} {
		require.Equal(t, want, math.Float32bits(cells[i]), "cell %d", i)
	}
	require.Equal(t, []format.Run{{From: 0, To: 3}}, s.Meta().Index.MissingLists[0])
}

// TestBreaks checks where breaks are kept, and that extreme times do not overflow.
func TestBreaks(t *testing.T) {
	w, path := create(t, nil)
	row := []writer.Cells{{F32: []float32{1, 2}}}
	require.NoError(t, w.Begin("A"))
	require.NoError(t, w.Break(1), "before the first row it does nothing")
	require.NoError(t, w.Append([]int64{math.MinInt64}, row))
	require.NoError(t, w.Break(1))
	require.NoError(t, w.Break(1), "twice is once")
	require.NoError(t, w.Append([]int64{math.MinInt64 + 5}, row))
	require.NoError(t, w.Append([]int64{math.MaxInt64}, row))
	require.NoError(t, w.Break(1), "behind the last row it does nothing")
	require.NoError(t, w.Begin("B"))
	require.NoError(t, w.Break(1))
	require.NoError(t, w.Begin("C"))
	require.NoError(t, w.Append([]int64{7, 12, 18}, []writer.Cells{{F32: make([]float32, 6)}}))
	require.NoError(t, w.Break(1))
	require.NoError(t, w.Finish(context.Background(), nil))

	s, err := reader.Open(path, &reader.Options{Verify: true})
	require.NoError(t, err)
	defer s.Close()
	ix := s.Meta().Index
	require.Equal(t, [][]format.Use{{{Ticker: 0, List: 0}, {Ticker: 2, List: 0}}, {{Ticker: 0, List: 1}}}, ix.Breaks)
	require.Equal(t, [][]int64{{2}, {1}}, ix.BreakLists)
}

// TestEmptySlicesDoNotDecideTheType gives every group both slices, as code that reuses a struct does.
func TestEmptySlicesDoNotDecideTheType(t *testing.T) {
	c := bigPanel()
	path := filepath.Join(t.TempDir(), "a.wst")
	w, err := writer.Create(path, c.Schema, nil)
	require.NoError(t, err)
	require.NoError(t, w.Begin("A"))
	require.NoError(t, w.Append([]int64{1}, []writer.Cells{
		{F32: []float32{1, 2, 3}, I64: []int64{}}, {F32: []float32{}, I64: []int64{9}},
	}))
	require.NoError(t, w.Finish(context.Background(), nil))
}

// TestMisuse makes every mistake there is; each is an error, and the writer goes on.
func TestMisuse(t *testing.T) {
	w, path := create(t, nil)
	row := []writer.Cells{{F32: []float32{1, 2}}}
	ctx := context.Background()
	require.ErrorIs(t, w.Append([]int64{1}, row), writer.ErrOrder)
	require.ErrorIs(t, w.Break(1), writer.ErrOrder)
	require.ErrorIs(t, w.Begin(""), format.ErrName)
	require.ErrorIs(t, w.Begin(strings.Repeat("x", 256)), format.ErrName)
	require.ErrorIs(t, w.Begin("\xff"), format.ErrName)
	require.NoError(t, w.Begin("A"))
	require.ErrorIs(t, w.Begin("A"), writer.ErrOrder)
	require.Error(t, w.Break(-1))
	require.Error(t, w.Break(2))
	require.Error(t, w.Break(0), "gaps follow from the times")

	require.ErrorContains(t, w.Append([]int64{1}, nil), "0 groups")
	require.ErrorContains(t, w.Append([]int64{1}, append(row, row...)), "2 groups")
	require.ErrorContains(t, w.Append([]int64{1, 2}, row), `group "features"`)
	require.Error(t, w.Append([]int64{1}, []writer.Cells{{F32: []float32{1}}}))
	require.Error(t, w.Append([]int64{1}, []writer.Cells{{I64: []int64{1, 2}}}))
	require.Error(t, w.Append([]int64{1}, []writer.Cells{{F32: []float32{1, 2}, I64: []int64{1}}}))
	require.NoError(t, w.Append(nil, []writer.Cells{{}}))
	two := []writer.Cells{{F32: make([]float32, 4)}}
	require.ErrorIs(t, w.Append([]int64{2, 2}, two), writer.ErrTimes)
	require.ErrorIs(t, w.Append([]int64{2, 1}, two), writer.ErrTimes)
	require.NoError(t, w.Append([]int64{5}, row))
	err := w.Append([]int64{5}, row)
	require.ErrorIs(t, err, writer.ErrTimes)
	require.ErrorContains(t, err, `ticker "A", row 1 has 5 after 5`)
	require.NoError(t, w.Append([]int64{6}, row))
	require.NoError(t, w.Begin("B"))
	require.ErrorIs(t, w.Begin("A"), writer.ErrOrder)
	require.NoError(t, w.Append([]int64{-9}, row), "times of another ticker start anew")

	require.Error(t, w.Finish(ctx, []byte("{")))
	require.Error(t, w.Finish(ctx, []byte("\"\xff\"")))
	require.Error(t, w.Finish(ctx, []byte{}))
	require.NoError(t, w.Finish(ctx, []byte(`{"a": [1]}`)))
	require.ErrorIs(t, w.Finish(ctx, nil), writer.ErrOrder)
	require.ErrorIs(t, w.Begin("C"), writer.ErrOrder)
	require.ErrorIs(t, w.Append([]int64{9}, row), writer.ErrOrder)
	require.ErrorIs(t, w.Break(1), writer.ErrOrder)
	require.NoError(t, w.Abort(), "after Finish it does nothing")

	s, err := reader.Open(path, &reader.Options{Verify: true})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, []string{"A", "B"}, s.Tickers())
	require.Equal(t, []int64{2, 1}, s.Meta().Tickers.Rows)
	p, err := s.Provenance()
	require.NoError(t, err)
	require.Equal(t, `{"a": [1]}`, string(p))
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wst")
	schema := bigPanel().Schema
	for _, align := range []int{-1, 1, 32, 63, 65, 1 << 17} {
		_, err := writer.Create(path, schema, &writer.Options{Align: align})
		require.ErrorContains(t, err, "power of two", align)
	}
	_, err := writer.Create(path, &format.Schema{}, nil)
	require.ErrorContains(t, err, "0 groups")
	_, err = writer.Create(filepath.Join(dir, "no", "a.wst"), schema, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = writer.Create(dir, schema, &writer.Options{Overwrite: true})
	require.ErrorContains(t, err, "not a regular file")
	require.Empty(t, files(t, dir))
}

func TestExistingFileIsKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wst")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	c := bigPanel()
	_, err := writer.Create(path, c.Schema, nil)
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, "old", string(read(t, path)))
	require.NoError(t, write(path, c, &writer.Options{Overwrite: true}))
	require.True(t, slices.Equal(c.Build(), read(t, path)))

	// One that appears between Create and Finish is kept too.
	path = filepath.Join(dir, "b.wst")
	w, err := writer.Create(path, c.Schema, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("new"), 0o600))
	require.ErrorIs(t, w.Finish(context.Background(), nil), fs.ErrExist)
	require.Equal(t, "new", string(read(t, path)))
	require.Equal(t, []string{"a.wst", "b.wst"}, files(t, dir))
}

func TestNothingIsLeftAfterAbort(t *testing.T) {
	w, path := create(t, nil)
	require.NoError(t, w.Begin("A"))
	require.NotEmpty(t, files(t, filepath.Dir(path)))
	require.NoError(t, w.Abort())
	require.Empty(t, files(t, filepath.Dir(path)))
	require.NoError(t, w.Abort())
	require.ErrorIs(t, w.Begin("B"), writer.ErrOrder)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tickers := range []string{"", "A"} {
		w, path := create(t, nil)
		if tickers != "" {
			require.NoError(t, w.Begin(tickers))
		}
		require.ErrorIs(t, w.Finish(ctx, nil), context.Canceled)
		require.Empty(t, files(t, filepath.Dir(path)))
	}
}

func TestEmptyFile(t *testing.T) {
	w, path := create(t, nil)
	require.NoError(t, w.Finish(context.Background(), nil))
	s, err := reader.Open(path, &reader.Options{Verify: true})
	require.NoError(t, err)
	defer s.Close()
	require.Empty(t, s.Tickers())
	ws, err := s.Windows(reader.Query{Lookback: 1})
	require.NoError(t, err)
	require.Zero(t, ws.Len())
}

// However many groups there are, a writer has two temporary files, and interleaves what it is given.
func TestManyGroups(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "many.wst")
	const groups, rows = 300, 20_000 // a block is larger than a chunk
	schema := &format.Schema{}
	for g := range groups {
		schema.Groups = append(schema.Groups, format.Group{
			Name: fmt.Sprint("g", g), DType: format.Float32, Columns: []format.Column{{Name: fmt.Sprint("c", g)}},
		})
	}
	w, err := writer.Create(path, schema, nil)
	require.NoError(t, err)
	require.NoError(t, w.Begin("A"))
	times, cells := make([]int64, rows), make([]writer.Cells, groups)
	for r := range times {
		times[r] = int64(r)
	}
	for g := range cells {
		cells[g].F32 = make([]float32, rows)
		for r := range times {
			cells[g].F32[r] = float32(g*rows + r)
		}
	}
	require.NoError(t, w.Append(times, cells))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.NoError(t, w.Finish(t.Context(), nil))

	s, err := reader.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	for g := range cells {
		got, err := v.Series(0, g)
		require.NoError(t, err)
		require.True(t, slices.Equal(cells[g].F32, got), g)
	}
}
