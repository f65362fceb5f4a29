package reader_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// requireBits compares floats by their bits and names the first that differs.
func requireBits(t require.TestingT, want []uint32, got []float32, what ...any) {
	require.Len(t, got, len(want), what...)
	for i, w := range want {
		if g := math.Float32bits(got[i]); g != w {
			require.Fail(t, fmt.Sprintf("element %d of %d is %08x (%g), must be %08x (%g)", i, len(want), g, got[i], w, math.Float32frombits(w)), what...)
		}
	}
}

// save writes a file of an encoder that shares no code with the writer.
func save(t require.TestingT, dir string, b []byte) string {
	f, err := os.CreateTemp(dir, "*.wst")
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return f.Name()
}

var accesses = map[string]reader.Access{"map": reader.Map, "load": reader.Load, "read": reader.Read}

// everyWay opens a file in each access mode, and its bytes, misaligned on purpose.
func everyWay(t require.TestingT, path string) map[string]*reader.Store {
	stores := map[string]*reader.Store{}
	for name, a := range accesses {
		s, err := reader.Open(path, &reader.Options{Access: a})
		require.NoError(t, err)
		stores[name] = s
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := reader.OpenBytes(append(make([]byte, 3, len(b)+3), b...)[3:], nil)
	require.NoError(t, err)
	stores["bytes"] = s
	if s, err = reader.OpenBytes(b, &reader.Options{Access: reader.Read}); err == nil {
		stores["bytes read"] = s
	}
	require.NoError(t, err)
	return stores
}

// queryOf turns a query of the oracle, whose times are in nanoseconds, into one of the reader.
func queryOf(q oracle.Query) reader.Query {
	got := reader.Query{
		Inputs: q.Inputs, Targets: q.Targets, Optional: q.Optional, Lookback: int(q.Lookback), TargetLength: int(q.TargetLength),
		Stride: int(q.Stride), Breaks: q.Breaks, Tickers: q.Tickers, Where: q.Where,
	}
	for _, h := range q.Horizons {
		got.Horizons = append(got.Horizons, int(h))
	}
	if q.At != nil {
		got.At = []time.Time{}
	}
	for _, v := range q.At {
		got.At = append(got.At, format.Nanosecond.Time(v))
	}
	if q.From != nil {
		got.From = format.Nanosecond.Time(*q.From)
	}
	if q.To != nil {
		got.To = format.Nanosecond.Time(*q.To)
	}
	return got
}

// steps is a panel of tickers of that many rows each, times 0, 1, 2, … of the unit; cell c of row r of ticker t is
// 1000·t + 10·r + c. Groups are features (x, y, z), targets (ret), ends (end) and masks (live), and there is a break
// set, session, without breaks.
func steps(rows ...int) *craft.Content {
	c := &craft.Content{Schema: &format.Schema{
		Unit: format.Second,
		Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}, {Name: "z"}}},
			{Name: "targets", DType: format.Float32, Columns: []format.Column{{Name: "ret"}}},
			{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "end", Role: format.LabelEnd}}},
			{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "live", Role: format.Mask}}},
		},
		Breaks: []format.BreakSet{{Name: "session", Kind: format.BreakGiven}},
	}}
	for i, n := range rows {
		t := oracle.Ticker{Name: fmt.Sprintf("T%03d", i), Cells: make([][]float32, 6), Ends: make([][]int64, 6), Breaks: make([][]int64, 1)}
		for r := range n {
			t.Times = append(t.Times, int64(r))
			for _, k := range []int{0, 1, 2, 3, 5} {
				t.Cells[k] = append(t.Cells[k], float32(1000*i+10*r+k))
			}
			t.Ends[4] = append(t.Ends[4], int64(r+1))
		}
		c.Tickers = append(c.Tickers, t)
	}
	return c
}

// open opens a panel in a file of its own.
func open(t *testing.T, c *craft.Content, a reader.Access) *reader.Store {
	t.Helper()
	s, err := reader.Open(save(t, t.TempDir(), c.Build()), &reader.Options{Access: a})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// windows is the answer to a query that must be valid.
func windows(t testing.TB, s *reader.Store, q reader.Query) *reader.Windows {
	t.Helper()
	w, err := s.Windows(q)
	require.NoError(t, err)
	return w
}

// rename replaces a file as a writer does.
func rename(t *testing.T, path string, b []byte) {
	t.Helper()
	require.NoError(t, os.Rename(save(t, filepath.Dir(path), b), path))
}

// inChild runs the test anew in a process of its own, which must log that it lives, and reports whether this is that
// process.
func inChild(t *testing.T) bool {
	const mark = "WSTORE_TEST_IN_CHILD"
	if os.Getenv(mark) != "" {
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), mark+"=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the process lives")
	return false
}
