package convert_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/reader"
)

const prices = "../testdata/article-100x470"

var priceColumns = []string{"open", "high", "low", "close", "volume"}

// concatenation reads the CSV files of a folder as one, under one header.
func concatenation(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	require.NoError(t, err)
	var b strings.Builder
	for i, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		head, rows, _ := strings.Cut(string(text), "\n")
		if i == 0 {
			b.WriteString(head + "\n")
		}
		b.WriteString(rows)
	}
	return b.String()
}

func TestFilePerTicker(t *testing.T) {
	r, s := run(t, convert.Options{Inputs: []string{prices}, Ticker: "Name"})
	requireSame(t, truth(t, strings.NewReader(concatenation(t, prices)), "Name", "date", "2006-01-02", priceColumns...), contents(t, s))

	require.Equal(t, 100, r.Tickers)
	require.Equal(t, 100, r.Files)
	require.EqualValues(t, 47000, r.RowsRead)
	require.EqualValues(t, 47000, r.RowsKept)
	require.Zero(t, r.Duplicates)
	require.Zero(t, r.UnsortedTickers)
	require.Equal(t, []string{"LICENSE"}, r.SkippedFiles)
	for _, c := range priceColumns {
		n := windows(t, s, reader.Query{Lookback: 60, Horizons: []int{1}, Inputs: []string{c}, Targets: []string{c}})
		require.Equal(t, 41000, n, c)
		require.LessOrEqual(t, float64(r.Index)/float64(n), 0.05, "bytes of index for a window")
	}
}

func TestLongTable(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 619,040 rows twice")
	}
	const path = "../testdata/sp500-5yr.csv.gz"
	r, s := run(t, convert.Options{Inputs: []string{path}, Ticker: "Name"})
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	requireSame(t, truth(t, io.Reader(z), "Name", "date", "2006-01-02", priceColumns...), contents(t, s))

	require.Len(t, s.Tickers(), 505)
	require.EqualValues(t, 619040, r.RowsKept)
	n := windows(t, s, reader.Query{Lookback: 60, Horizons: []int{1}, Inputs: []string{"features"}, Targets: []string{"close"}})
	require.Equal(t, 588323, n)
	require.LessOrEqual(t, float64(r.Index)/float64(n), 0.05, "bytes of index for a window")
	calendars := s.Meta().Calendars.Entries
	entries := int64(0)
	for _, e := range calendars {
		entries += e
	}
	require.Len(t, calendars, 7)
	require.EqualValues(t, 8762, entries)

	var cells int64
	for _, c := range r.Columns {
		cells += c.Missing
		require.LessOrEqual(t, c.MaxRelError, 0x1p-24, "%s: a rounding is half a unit of the 24 bits at most", c.Name)
	}
	require.EqualValues(t, 27, cells)
	volume := r.Columns[4]
	require.Equal(t, "volume", volume.Name)
	require.Positive(t, volume.Inexact, "volumes above 2^24")
	t.Logf("index: %d bytes, %.4f a window; missing cells %d; inexact volumes %d, largest relative error %g",
		r.Index, float64(r.Index)/float64(n), cells, volume.Inexact, volume.MaxRelError)
}
