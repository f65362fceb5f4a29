package convert_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

const missing = 0x7fc00000

// write writes a file below a folder and returns its path.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// run converts, into a folder of its own unless an output is named, and verifies the output.
func run(t testing.TB, o convert.Options) (*convert.Report, *reader.Store) {
	t.Helper()
	if o.Output == "" {
		o.Output = filepath.Join(t.TempDir(), "out.wst")
	}
	report, err := convert.Run(context.Background(), o)
	require.NoError(t, err)
	s, err := reader.Open(o.Output, &reader.Options{Verify: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	requireAlone(t, o.Output)
	return report, s
}

// convertText converts one CSV text that has a column `ticker`.
func convertText(t testing.TB, text string, o convert.Options) (*convert.Report, *reader.Store) {
	t.Helper()
	o.Inputs = []string{write(t, t.TempDir(), "in.csv", text)}
	if o.Ticker == "" {
		o.Ticker = "ticker"
	}
	return run(t, o)
}

// fails converts and returns the error, after making sure that nothing was left behind. The input in.csv is made of text
// if o names none.
func fails(t testing.TB, text string, o convert.Options) error {
	t.Helper()
	if o.Inputs == nil {
		o.Inputs = []string{write(t, t.TempDir(), "in.csv", text)}
	}
	if o.Output == "" {
		o.Output = filepath.Join(t.TempDir(), "out.wst")
	}
	report, err := convert.Run(context.Background(), o)
	require.Error(t, err)
	require.Nil(t, report)
	require.NoFileExists(t, o.Output)
	requireAlone(t, o.Output)
	return err
}

// requireAlone makes sure that no temporary file stands beside an output.
func requireAlone(t testing.TB, output string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(output))
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	for _, e := range entries {
		require.False(t, strings.HasSuffix(e.Name(), ".tmp"), "%s was left behind", e.Name())
	}
}

// series is a ticker's rows: times, and the bits of the cells of each float32 column.
type series struct {
	times []time.Time
	cells map[string][]uint32
}

// contents reads everything back.
func contents(t testing.TB, s *reader.Store) map[string]series {
	t.Helper()
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	schema := s.Meta().Schema
	out := map[string]series{}
	for i, name := range s.Tickers() {
		r := series{cells: map[string][]uint32{}}
		times, err := v.Times(i)
		require.NoError(t, err)
		for _, at := range times {
			r.times = append(r.times, schema.Unit.Time(at))
		}
		for g, group := range schema.Groups {
			if group.DType != format.Float32 {
				continue
			}
			cells, err := v.Series(i, g)
			require.NoError(t, err)
			for k, x := range cells {
				c := group.Columns[k%len(group.Columns)].Name
				r.cells[c] = append(r.cells[c], math.Float32bits(x))
			}
		}
		out[name] = r
	}
	return out
}

// truth reads CSV text with the standard library alone: the rows of each ticker in the order of time.
func truth(t testing.TB, in io.Reader, ticker, date, layout string, columns ...string) map[string]series {
	t.Helper()
	rows, err := csv.NewReader(in).ReadAll()
	require.NoError(t, err)
	at := func(name string) int {
		i := slices.Index(rows[0], name)
		require.GreaterOrEqual(t, i, 0, name)
		return i
	}
	type row struct {
		at    time.Time
		cells []uint32
	}
	byTicker := map[string][]row{}
	for _, r := range rows[1:] {
		when, err := time.Parse(layout, r[at(date)])
		require.NoError(t, err)
		one := row{at: when}
		for _, c := range columns {
			bits := uint32(missing)
			if text := r[at(c)]; text != "" {
				v, err := strconv.ParseFloat(text, 32)
				require.NoError(t, err)
				bits = math.Float32bits(float32(v))
			}
			one.cells = append(one.cells, bits)
		}
		name := r[at(ticker)]
		byTicker[name] = append(byTicker[name], one)
	}
	out := map[string]series{}
	for name, rows := range byTicker {
		slices.SortStableFunc(rows, func(a, b row) int { return a.at.Compare(b.at) })
		s := series{cells: map[string][]uint32{}}
		for _, r := range rows {
			s.times = append(s.times, r.at)
			for i, c := range columns {
				s.cells[c] = append(s.cells[c], r.cells[i])
			}
		}
		out[name] = s
	}
	return out
}

// requireSame compares, ticker by ticker, so that a difference is short.
func requireSame(t testing.TB, want, got map[string]series) {
	t.Helper()
	require.Len(t, got, len(want))
	for name, w := range want {
		g, ok := got[name]
		require.True(t, ok, name)
		require.Len(t, g.times, len(w.times), name)
		for i := range w.times {
			require.True(t, w.times[i].Equal(g.times[i]), "%s, row %d: %s, want %s", name, i, g.times[i], w.times[i])
		}
		require.Len(t, g.cells, len(w.cells), name)
		for c := range w.cells {
			if !slices.Equal(w.cells[c], g.cells[c]) {
				require.Equal(t, w.cells[c], g.cells[c], "%s, column %s", name, c)
			}
		}
	}
}

// windows counts.
func windows(t testing.TB, s *reader.Store, q reader.Query) int {
	t.Helper()
	w, err := s.Windows(q)
	require.NoError(t, err)
	return w.Len()
}

// breaks returns the rows of a ticker at which a break set has breaks.
func breaks(t testing.TB, s *reader.Store, set string) (at []int64) {
	t.Helper()
	// A pair of rows without a break between them is a window of lookback 2.
	w, err := s.Windows(reader.Query{Lookback: 2, Breaks: []string{set}, Targets: []string{}, Inputs: []string{s.Meta().Schema.Groups[0].Name}})
	require.NoError(t, err)
	for row := int64(1); row < s.Rows(0); row++ {
		if _, ok := w.Number(0, row); !ok {
			at = append(at, row)
		}
	}
	return at
}

// panel makes the rows of a table `date,ticker,a,b` of days × tickers by date, with a header apart.
func panel(days, tickers int) (header string, rows []string) {
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := range days {
		for k := range tickers {
			if (d*7+k*3)%29 == 0 {
				continue // days that a ticker lacks
			}
			b := fmt.Sprintf("%d", (d*31+k*17)%1000)
			if d%11 == 0 {
				b = ""
			}
			rows = append(rows, fmt.Sprintf("%s,T%02d,%.4f,%s\n", start.AddDate(0, 0, d).Format(time.DateOnly), k, math.Sin(float64(d))*float64(k+1), b))
		}
	}
	return "date,ticker,a,b\n", rows
}
