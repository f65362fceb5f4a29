package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("any"), exitFailure},
		{fs.ErrExist, exitFailure},
		{fs.ErrPermission, exitFailure},
		{usagef("any"), exitUsage},
		{reader.ErrQuery, exitUsage},
		{format.DataChecksum, exitFailure}, // only as part of a CorruptError
		{&format.CorruptError{Code: format.DataChecksum}, exitUnusable},
		{&format.UnsupportedError{}, exitUnsupported},
		{&ingest.RowError{}, exitUnusable},
		{&ingest.UnusableError{Err: fs.ErrNotExist}, exitUnusable},
		{&reader.NotFoundError{}, exitNotFound},
		{&fs.PathError{Err: fs.ErrNotExist}, exitNotFound},
		{context.Canceled, exitInterrupted},
		{errors.Join(context.Canceled, fs.ErrNotExist), exitInterrupted},
	} {
		require.Equal(t, c.code, exitCode(fmt.Errorf("wrapped: %w", c.err)), "%v", c.err)
	}
	require.True(t, isClosedPipe(&fs.PathError{Err: syscall.EPIPE}))
	require.False(t, isClosedPipe(fs.ErrClosed))
}

func TestMessageIsOneCleanLine(t *testing.T) {
	err := errors.Join(fmt.Errorf("wstore: a\x1b[31m"), errors.New("b\u202e\xff"))
	require.Equal(t, `a\x1b[31m; b\u202e\xff`, message(err))
}

func TestMessageSaysWhatToTry(t *testing.T) {
	for _, c := range []struct {
		err  error
		text string
	}{
		{&fs.PathError{Op: "write", Path: "p", Err: syscall.ENOSPC}, "write p: no space left on device; free some space, or write to another disk"},
		{&fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES}, "open p: permission denied; change the permissions, or name an output in a folder that you may write to"},
		{&fs.PathError{Op: "open", Path: "p", Err: syscall.EROFS}, "open p: read-only file system; change the permissions, or name an output in a folder that you may write to"},
		{&format.CorruptError{Path: "p", Offset: 7, Code: format.DataChecksum}, "p: data are damaged (byte 7); copy the file again from where it came, or convert the data again"},
		{&format.CorruptError{Path: "p", Offset: 7, Code: format.Truncated, Detail: "fetch it again"}, "p: the file is shorter than it says (byte 7): fetch it again"},
	} {
		if runtime.GOOS != "windows" { // which says the first half otherwise
			require.Equal(t, c.text, message(c.err))
		}
	}
}

func TestBenchCopiesWhatGatherDoes(t *testing.T) {
	s, err := reader.Open(write(t, "daily"), nil)
	require.NoError(t, err)
	defer s.Close()
	for _, q := range []reader.Query{
		{Lookback: 3},
		{Lookback: 3, Inputs: []string{"volume", "open"}, Targets: []string{"close", "volume"}, Horizons: []int{1, 3}, TargetLength: 2},
		{Lookback: 2, Inputs: []string{"close"}, Targets: []string{"features"}, Horizons: []int{-1, 2}},
		{Lookback: 1, Targets: []string{}},
	} {
		w, err := s.Windows(q)
		require.NoError(t, err)
		v, err := w.View()
		require.NoError(t, err)
		defer v.Release()
		c := copier{v: v, inputs: w.Inputs(), targets: w.Targets()}
		var ids []int
		for i := range w.Len() {
			x, y := v.At(i)
			ids, c.from = append(ids, i), append(c.from, reader.Window{X: x, Y: y})
		}
		nx, ny := len(ids)*c.inputs.Size(), len(ids)*c.targets.Size()
		x, y, wantX, wantY := make([]float32, nx), make([]float32, ny), make([]float32, nx), make([]float32, ny)
		require.NoError(t, w.Gather(ids, wantX, wantY))
		require.NoError(t, c.copy(x, y))
		require.Equal(t, f32.Append(nil, wantX), f32.Append(nil, x))
		require.Equal(t, f32.Append(nil, wantY), f32.Append(nil, y))
	}
}

func TestClockWritesWhatTimeDoes(t *testing.T) {
	layouts := map[format.Unit]string{
		format.Second: "2006-01-02T15:04:05Z", format.Millisecond: "2006-01-02T15:04:05.000Z",
		format.Microsecond: "2006-01-02T15:04:05.000000Z", format.Nanosecond: "2006-01-02T15:04:05.000000000Z",
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]format.Unit{format.Second, format.Millisecond, format.Microsecond, format.Nanosecond}).Draw(t, "unit")
		c := newClock(unit, false)
		per := int64(time.Second / unit.Duration())
		for range 4 { // the clock remembers a date
			v := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e5*per, 1e5*per), rapid.Int64Range(-62167219200, 253402300799)).Draw(t, "time")
			want := unit.Time(v)
			if second, _ := floorDiv(v, per); second < -62167219200 || second > 253402300799 {
				require.Equal(t, strconv.FormatInt(v, 10), c.text(v))
				continue
			}
			require.Equal(t, want.Format(layouts[unit]), c.text(v))
			back, err := (&timeParser{unit: unit}).parse("at", c.text(v))
			require.NoError(t, err)
			require.True(t, want.Equal(back))
		}
	})
}

func TestCellsComeBackBitForBit(t *testing.T) {
	check := func(t require.TestingT, bits uint32) {
		v := math.Float32frombits(bits)
		text := string(appendCell(nil, v))
		if format.IsMissing(v) {
			require.Empty(t, text)
			return
		}
		back, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		require.Equal(t, bits, math.Float32bits(float32(back)), text)
	}
	for _, bits := range []uint32{0, 1 << 31, 1, 0x7f7fffff, 0x4b7fffff, 0x4b800000, 0x4b800001, 0xcb800000, 0x7fc00000, 0x7f800000} {
		check(t, bits)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Uint32().Draw(t, "bits")) })
}

func TestLimited(t *testing.T) {
	for _, c := range [][4]int{
		{10, 0, 0, 10}, {10, 3, 0, 3}, {10, 30, 0, 10}, {10, -3, 7, 10}, {10, -30, 0, 10}, {0, -1, 0, 0}, {10, math.MinInt, 0, 10},
	} {
		from, to := limited(c[0], c[1])
		require.Equal(t, [2]int{c[2], c[3]}, [2]int{from, to}, "%d of %d", c[1], c[0])
	}
}

func TestListFlag(t *testing.T) {
	var l list
	require.NoError(t, l.Set(""))
	require.Equal(t, list{}, l) // given, and nothing: not the default
	require.NoError(t, l.Set(`a,"b,c"`))
	require.NoError(t, l.Set(`"q""q"`))
	require.Equal(t, list{"a", "b,c", `q"q`}, l)
	require.Error(t, l.Set(`a"b`))
	require.Error(t, l.Set("a\nb"))
}

func TestArrayFilesAreSafeAndDiffer(t *testing.T) {
	names := []string{"features", "Features", "time", "../x", "/etc", "", "con", "label_end.end", ".hidden", "group1", strings.Repeat("a", 255), "ü"}
	groups := make([]format.Group, len(names))
	for i, n := range names {
		groups[i].Name = n
	}
	files := arrayFiles(groups)
	require.Equal(t, "features.npy", files[0])
	require.Equal(t, "label_end.end.npy", files[7])
	seen := map[string]bool{"time.npy": true, "ticker_start.npy": true}
	for _, f := range files {
		require.Equal(t, filepath.Base(f), f)
		require.False(t, seen[strings.ToLower(f)], f)
		seen[strings.ToLower(f)] = true
		require.Less(t, len(f), 100)
	}
}

// write writes a store of a kind for tests.
func write(t *testing.T, kind string) string {
	schema, tickers := kinds[kind]()
	path := filepath.Join(t.TempDir(), kind+".wst")
	w, err := writer.Create(path, schema, nil)
	require.NoError(t, err)
	for _, r := range tickers {
		require.NoError(t, w.Begin(r.name))
		if len(r.times) > 0 {
			require.NoError(t, w.Append(r.times, r.cells))
		}
	}
	require.NoError(t, w.Finish(t.Context(), nil))
	return path
}

// try runs a command line in this process.
func try(ctx context.Context, t *testing.T, args ...string) (code int, stderr string) {
	out, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	require.NoError(t, err)
	defer out.Close()
	var messages bytes.Buffer
	return run(ctx, args, out, &messages), messages.String()
}

func TestArraysHoldTheRows(t *testing.T) {
	path := write(t, "odd")
	dir := filepath.Join(t.TempDir(), "arrays")
	code, stderr := try(t.Context(), t, "export", path, "--format", "npy", "-o", dir)
	require.Zero(t, code, stderr)

	_, tickers := odd()
	var times, starts, ends, cells, ok []byte
	le := binary.LittleEndian
	starts = le.AppendUint64(starts, 0)
	n := 0
	slices.SortFunc(tickers, func(a, b rows) int { return strings.Compare(a.name, b.name) })
	for _, r := range tickers {
		for i, v := range r.times {
			times = le.AppendUint64(times, uint64(v))
			ends = le.AppendUint64(ends, uint64(r.cells[2].I64[i]))
			ok = le.AppendUint32(ok, math.Float32bits(r.cells[3].F32[i]))
			for _, c := range r.cells[0].F32[2*i : 2*i+2] {
				cells = le.AppendUint32(cells, math.Float32bits(c))
			}
		}
		n += len(r.times)
		starts = le.AppendUint64(starts, uint64(n))
	}
	for name, want := range map[string]struct {
		dict string
		data []byte
	}{
		"time.npy":         {"{'descr': '<i8', 'fortran_order': False, 'shape': (28,), }", times},
		"ticker_start.npy": {"{'descr': '<i8', 'fortran_order': False, 'shape': (8,), }", starts},
		"group0.npy":       {"{'descr': '<f4', 'fortran_order': False, 'shape': (28, 2), }", cells},
		"ends.npy":         {"{'descr': '<i8', 'fortran_order': False, 'shape': (28, 1), }", ends},
		"group3.npy":       {"{'descr': '<f4', 'fortran_order': False, 'shape': (28, 1), }", ok},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "\x93NUMPY\x01\x00", string(b[:8]))
		at := 10 + int(le.Uint16(b[8:]))
		require.Zero(t, at%64, name)
		require.Equal(t, byte('\n'), b[at-1])
		require.Equal(t, want.dict, strings.TrimRight(string(b[10:at]), " \n"))
		require.True(t, bytes.Equal(want.data, b[at:]), name)
	}
}

func TestInterruptedLeavesNothing(t *testing.T) {
	path := write(t, "big")
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"verify", path},
		{"windows", path, "--lookback", "2"},
		{"bench", path},
		{"export", path, "-o", filepath.Join(dir, "out.csv")},
		{"export", path, "-o", filepath.Join(dir, "out.csv.gz")},
		{"export", path, "--format", "npy", "-o", filepath.Join(dir, "out")},
	} {
		code, stderr := try(ctx, t, args...)
		require.Equal(t, exitInterrupted, code, "%v: %s", args, stderr)
		require.Equal(t, "wstore: interrupted\n", stderr)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestLongTextIsCut(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, strings.Repeat("ä", 50)+strconv.Itoa(i))
	}
	text := some(names)
	require.Equal(t, 8, strings.Count(text, "…"))
	require.True(t, strings.HasSuffix(text, ", and 12 more"))
	require.Equal(t, "3 days", span(3*86400, format.Second))
	require.Equal(t, "90 minutes", span(90*60*1000, format.Millisecond))
	require.Equal(t, "1,500 ms", span(1500, format.Millisecond))
}
