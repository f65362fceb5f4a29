package reader_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	good := steps(5).Build()
	for what, c := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":    {nil, format.NotWstore},
		"text":     {[]byte("date,open,close\n"), format.NotWstore},
		"half":     {good[:len(good)/2], format.Truncated},
		"trailing": {append(good[:len(good):len(good)], 1), format.Trailing},
	} {
		path := save(t, dir, c.b)
		for _, a := range accesses {
			_, err := reader.Open(path, &reader.Options{Access: a})
			require.ErrorIs(t, err, c.want, what)
			require.ErrorIs(t, err, format.ErrCorrupt)
			require.ErrorContains(t, err, path)
		}
		s, err := reader.OpenBytes(c.b, nil)
		require.ErrorIs(t, err, c.want, what)
		require.Nil(t, s)
	}

	_, err := reader.Open(filepath.Join(dir, "none.wst"), nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = reader.Open(dir, nil)
	require.ErrorContains(t, err, "folder")
	path := save(t, dir, good)
	_, err = reader.Open(path, &reader.Options{Access: 9})
	require.ErrorContains(t, err, "access 9")
	_, err = reader.Open(path, &reader.Options{Access: reader.Load, LoadLimit: int64(len(good)) - 1})
	require.ErrorContains(t, err, "more than the limit")
	s, err := reader.Open(path, &reader.Options{Access: reader.Load, LoadLimit: int64(len(good)), Verify: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	open := craft.Split(good)
	open.Slot.Incompat = 1
	path = save(t, dir, open.Join())
	_, err = reader.Open(path, nil)
	require.ErrorIs(t, err, format.ErrUnsupported)
	require.NotErrorIs(t, err, format.ErrCorrupt)
	require.ErrorContains(t, err, path)
}

// TestOpenAllocates checks that opening takes memory for what the file says of its data, not for the data.
func TestOpenAllocates(t *testing.T) {
	path := save(t, t.TempDir(), steps(400_000).Build()) // 13 MB
	for how, a := range map[string]reader.Access{"map": reader.Map, "read": reader.Read} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := reader.Open(path, &reader.Options{Access: a})
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<10), how)
		require.NoError(t, s.Close())
	}
}

func TestQueryNames(t *testing.T) {
	s := open(t, steps(9, 9), reader.Map)
	for _, c := range []struct {
		q          reader.Query
		kind, name string
		near       []string
	}{
		{reader.Query{Inputs: []string{"feature"}}, "column or group", "feature", []string{"features"}},
		{reader.Query{Inputs: []string{"X"}}, "column or group", "X", []string{"x", "y", "z"}},
		{reader.Query{Targets: []string{"rte"}}, "column or group", "rte", []string{"ret"}},
		{reader.Query{Optional: []string{"ret0"}}, "column or group", "ret0", []string{"ret"}},
		{reader.Query{Where: []string{"alive"}}, "column or group", "alive", []string{"live"}},
		{reader.Query{Breaks: []string{"sesion"}}, "break set", "sesion", []string{"session"}},
		{reader.Query{Tickers: []string{"t001"}}, "ticker", "t001", []string{"T001", "T000"}},
		{reader.Query{Tickers: []string{""}}, "ticker", "", nil},
		{reader.Query{Tickers: []string{"quite another"}}, "ticker", "quite another", nil},
	} {
		c.q.Lookback = 2
		_, err := s.Windows(c.q)
		require.ErrorIs(t, err, reader.ErrNotFound)
		var n *reader.NotFoundError
		require.ErrorAs(t, err, &n)
		require.Equal(t, &reader.NotFoundError{Path: s.Path(), Kind: c.kind, Name: c.name, Near: c.near}, n)
		if c.near != nil {
			require.ErrorContains(t, err, `did you mean "`+c.near[0]+`"`)
		}
	}
	_, err := s.Group("masksx")
	require.ErrorContains(t, err, `no group "masksx" in `+s.Path()+`; did you mean "masks"?`)
	g, err := s.Group("ends")
	require.NoError(t, err)
	require.Equal(t, 2, g)
}

func TestBadQueries(t *testing.T) {
	s := open(t, steps(9, 9), reader.Map)
	good := reader.Query{Inputs: []string{"x"}, Targets: []string{"y"}, Lookback: 3}
	windows(t, s, good)
	for what, c := range map[string]struct {
		change func(q *reader.Query)
		says   string
	}{
		"no inputs":         {func(q *reader.Query) { q.Inputs = []string{} }, "no inputs"},
		"input twice":       {func(q *reader.Query) { q.Inputs = []string{"features", "x"} }, `"x" is named twice`},
		"target twice":      {func(q *reader.Query) { q.Targets = []string{"y", "y"} }, `"y" is named twice`},
		"times as input":    {func(q *reader.Query) { q.Inputs = []string{"end"} }, "holds times"},
		"times as group":    {func(q *reader.Query) { q.Where = []string{"ends"} }, "holds times"},
		"optional unused":   {func(q *reader.Query) { q.Optional = []string{"z"} }, `"z" is neither`},
		"no lookback":       {func(q *reader.Query) { q.Lookback = 0 }, "lookback 0, must be 1 to 2147483647"},
		"negative lookback": {func(q *reader.Query) { q.Lookback = -1 }, "lookback -1"},
		"negative stride":   {func(q *reader.Query) { q.Stride = -1 }, "stride -1"},
		"negative length":   {func(q *reader.Query) { q.TargetLength = -1 }, "target length -1"},
		"horizons unsorted": {func(q *reader.Query) { q.Horizons = []int{2, 1} }, "strictly increasing"},
		"horizons equal":    {func(q *reader.Query) { q.Horizons = []int{2, 2} }, "strictly increasing"},
		"horizon too low":   {func(q *reader.Query) { q.Horizons = []int{-3} }, "must be -2"},
		"too many horizons": {func(q *reader.Query) { q.Horizons = make([]int, 4097) }, "at most 4096"},
		"horizon alone":     {func(q *reader.Query) { q.Targets, q.Horizons = []string{}, []int{1} }, "without targets"},
		"length alone":      {func(q *reader.Query) { q.Targets, q.TargetLength = []string{}, 1 }, "without targets"},
		"at with stride":    {func(q *reader.Query) { q.At, q.Stride = []time.Time{{}}, 2 }, "together with at"},
	} {
		q := good
		c.change(&q)
		_, err := s.Windows(q)
		require.ErrorIs(t, err, reader.ErrQuery, what)
		require.ErrorContains(t, err, c.says, what)
	}
	if math.MaxInt > math.MaxInt32 {
		beyond := math.MaxInt32
		beyond++
		for _, change := range []func(q *reader.Query){
			func(q *reader.Query) { q.Lookback = beyond }, func(q *reader.Query) { q.Stride = beyond },
			func(q *reader.Query) { q.TargetLength = beyond }, func(q *reader.Query) { q.Horizons = []int{beyond} },
		} {
			q := good
			change(&q)
			_, err := s.Windows(q)
			require.ErrorIs(t, err, reader.ErrQuery)
		}
	}

	nameless := steps(3)
	nameless.Schema.Groups[0].Name = "data"
	_, err := open(t, nameless, reader.Map).Windows(reader.Query{Lookback: 1})
	require.ErrorIs(t, err, reader.ErrQuery)
	require.ErrorContains(t, err, "no group `features`")
}

// TestQueryDefaults pins what is filled in, and that names may come twice where that means nothing.
func TestQueryDefaults(t *testing.T) {
	s := open(t, steps(9), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 2})
	require.Equal(t, reader.Query{
		Inputs: []string{"features"}, Targets: []string{"targets"}, Lookback: 2, Horizons: []int{1}, TargetLength: 1, Stride: 1,
	}, w.Query())
	require.Equal(t, reader.Layout{Starts: []int{0}, Length: 2, Width: 3, Columns: []int{0, 1, 2}, Names: []string{"x", "y", "z"}}, w.Inputs())
	require.Equal(t, 7, w.Len())
	require.Contains(t, w.String(), "7 windows of "+s.Path())
	none := windows(t, s, reader.Query{Targets: []string{}, Lookback: 2})
	require.Equal(t, 8, none.Len())
	require.Empty(t, none.Targets())
	twice := windows(t, s, reader.Query{
		Lookback: 2, Optional: []string{"x", "features", "targets"}, Where: []string{"live", "masks"},
		Tickers: []string{"T000", "T000"}, At: []time.Time{time.Unix(5, 0), time.Unix(5, 0), time.Unix(5, 1)},
	})
	require.Equal(t, 1, twice.Len())
}

// TestAnchorsAtTheEndsOfTime queries without a bound, where times are the least and the greatest there are.
func TestAnchorsAtTheEndsOfTime(t *testing.T) {
	c := steps(3)
	c.Schema.Unit = format.Nanosecond
	c.Tickers[0].Times = []int64{math.MinInt64, 0, math.MaxInt64}
	for _, a := range accesses {
		s := open(t, c, a)
		for want, q := range []reader.Query{
			0: {To: format.Nanosecond.Time(math.MinInt64)},
			1: {From: format.Nanosecond.Time(1)},
			2: {To: format.Nanosecond.Time(math.MaxInt64)},
			3: {From: format.Nanosecond.Time(math.MinInt64)},
		} {
			q.Lookback, q.Targets = 1, []string{}
			require.Equal(t, want, windows(t, s, q).Len())
		}
		require.Zero(t, windows(t, s, reader.Query{Lookback: 1, Targets: []string{}, From: time.Unix(9, 0), To: time.Unix(8, 0)}).Len())
	}
}

// TestVerify breaks one thing that opening does not look at, all else being right.
func TestVerify(t *testing.T) {
	le := binary.LittleEndian
	base := func() *craft.File {
		c := steps(20_001, 3)
		c.Provenance = []byte("{}")
		return craft.Split(c.Build())
	}
	const calendar = 0                      // of the data, and the first block:
	const block = (20_001*8 + 63) / 64 * 64 // alignment is 64
	repaired := func(change func(f *craft.File)) func() []byte {
		return func() []byte {
			f := base()
			change(f)
			if err := f.Repair(); err != nil {
				panic(err)
			}
			return f.Join()
		}
	}
	raw := func(change func(b []byte)) func() []byte {
		return func() []byte {
			b := base().Join()
			change(b)
			return b
		}
	}
	withGaps := func(wrong int64) func() []byte {
		return func() []byte {
			c := steps(9)
			c.Schema.Breaks = append(c.Schema.Breaks, format.BreakSet{Name: "gap", Kind: format.BreakGap, MaxGap: 5})
			c.Tickers[0].Times[8] = 100
			c.Tickers[0].Breaks = [][]int64{nil, {wrong}}
			return c.Build()
		}
	}
	for what, c := range map[string]struct {
		make func() []byte
		code format.Code
	}{
		"nothing":              {raw(func(b []byte) {}), ""},
		"slot 1 damaged":       {raw(func(b []byte) { b[4096] = 1 }), format.SlotDamaged},
		"slot 1 used":          {raw(func(b []byte) { copy(b[4096:4608], b) }), format.SlotInvalid},
		"padding of slots":     {raw(func(b []byte) { b[8191] = 1 }), format.PaddingNotZero},
		"padding of data":      {raw(func(b []byte) { b[8192+block+20_001*12] = 1 }), format.PaddingNotZero},
		"provenance":           {raw(func(b []byte) { b[bytes.LastIndex(b, []byte("{}"))] = '[' }), format.SectionChecksum},
		"calendar damaged":     {raw(func(b []byte) { b[8192+calendar+100_000]++ }), format.DataChecksum},
		"block damaged":        {raw(func(b []byte) { b[8192+block+200_000]++ }), format.DataChecksum},
		"times equal":          {repaired(func(f *craft.File) { copy(f.Data[65536:65544], f.Data[65528:]) }), format.CalendarOrder},
		"infinite cell":        {repaired(func(f *craft.File) { le.PutUint32(f.Data[block+70_000:], 0x7f800000) }), format.CellInvalid},
		"another NaN":          {repaired(func(f *craft.File) { le.PutUint32(f.Data[block:], 0x7fc00001) }), format.CellInvalid},
		"missing, unlisted":    {repaired(func(f *craft.File) { le.PutUint32(f.Data[block+4:], 0x7fc00000) }), format.IndexMismatch},
		"gaps":                 {withGaps(8), ""},
		"gap at the wrong row": {withGaps(7), format.IndexMismatch},
		"digest":               {func() []byte { f := base(); f.Section("DGST").Bytes[31]++; return f.Join() }, format.DigestMismatch},
	} {
		t.Run(what, func(t *testing.T) {
			path := save(t, t.TempDir(), c.make())
			for _, a := range accesses {
				s, err := reader.Open(path, &reader.Options{Access: a})
				require.NoError(t, err)
				err = s.Verify(context.Background())
				_, early := reader.Open(path, &reader.Options{Access: a, Verify: true})
				if c.code == "" {
					require.NoError(t, err)
					require.NoError(t, early)
				} else {
					require.ErrorIs(t, err, c.code)
					require.ErrorIs(t, early, c.code)
					require.ErrorContains(t, err, path)
				}
				require.Equal(t, c.code == format.SlotDamaged, s.Warning() != nil)
				_, err = s.Provenance()
				require.Equal(t, what == "provenance", err != nil)
				require.NoError(t, s.Close())
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, open(t, steps(9), reader.Map).Verify(ctx), context.Canceled)
}

// TestEveryByteCounts changes each byte of a file: it no longer opens, or no longer verifies.
func TestEveryByteCounts(t *testing.T) {
	p := oracle.ExamplePanel()
	c := craft.FromPanel(p)
	c.Provenance = []byte("{}")
	b := c.Build()
	for i := range b {
		b[i] ^= 1 << (i % 8)
		s, err := reader.OpenBytes(b, nil)
		if err == nil {
			err = s.Verify(context.Background())
		}
		if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
			require.Fail(t, "not detected", "byte %d: %v", i, err)
		}
		b[i] ^= 1 << (i % 8)
	}
	for n := range b {
		if _, err := reader.OpenBytes(b[:n], nil); !errors.Is(err, format.ErrCorrupt) {
			require.Fail(t, "not detected", "%d bytes: %v", n, err)
		}
	}
}
