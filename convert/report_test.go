package convert_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/reader"
)

var update = flag.Bool("update", false, "write the golden files anew")

func crafted(t *testing.T) convert.Options {
	dir := t.TempDir()
	write(t, dir, "b.csv", `date,sym,close,volume,note,hole,venue
2024-01-03,B,0.1,16777217,x,,X
2024-01-02,B,0.5,16777216,x,,X
2024-01-01,B,inf,-inf,x,NaN,X
2024-01-01,A,1.5,1,x,,X
2024-01-01,A,1.50,1.0,y,,X
2024-01-02,A,,2,x,,X
2024-01-02,A,2,2,x,,X
2024-01-12,A,2.5,2,x,,X
2024-01-13,A,broken,2,x,,X
2024-01-14,A,3,NA,x,,Y
`)
	write(t, dir, "c.csv", "date,sym,close,volume,note,hole,venue\n")
	write(t, dir, "d.xlsx", "PK")
	write(t, dir, "LICENSE", "free")
	return convert.Options{
		Inputs: []string{dir}, Ticker: "sym", Columns: []string{"close", "hole"}, Groups: []convert.Group{{Name: "size", Columns: []string{"volume"}}},
		OnDuplicate: convert.DuplicateFirst, SkipBad: true, Lookback: 2, Breaks: []convert.Break{{Name: "venue", Column: "venue"}}, Version: "1.2.3",
	}
}

// golden compares JSON with a file; what names this run is cut out.
func golden(t *testing.T, name string, b []byte, cut ...string) {
	t.Helper()
	text := string(b)
	for _, c := range cut {
		text = strings.ReplaceAll(text, c, "…")
	}
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "write it with: go test ./convert -update")
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), text+"\n")
}

func TestReport(t *testing.T) {
	o := crafted(t)
	r, s := run(t, o)
	day := func(d int) time.Time { return time.Date(2024, 1, d, 0, 0, 0, 0, time.UTC) }
	require.Equal(t, 2, r.Files)
	require.Equal(t, []string{"LICENSE", "d.xlsx"}, r.SkippedFiles)
	require.Equal(t, []string{"c.csv"}, r.EmptyFiles)
	require.Equal(t, 2, r.Tickers)
	require.EqualValues(t, 9, r.RowsRead)
	require.EqualValues(t, 7, r.RowsKept)
	require.EqualValues(t, 1, r.RowsSkipped)
	require.Contains(t, r.FirstSkipped, `b.csv:10: column "close": "broken" is not a number`)
	require.EqualValues(t, 2, r.Duplicates)
	require.EqualValues(t, 1, r.Contradictory, "1.5 and 1.50 are the same, an empty cell and 2 are not")
	require.Equal(t, 1, r.UnsortedTickers)
	tenth := 0.1
	require.Equal(t, []convert.ColumnReport{
		{Name: "close", Group: "features", Missing: 2, NonFinite: 1, Inexact: 1, MaxRelError: (float64(float32(tenth)) - tenth) / tenth},
		{Name: "hole", Group: "features", Missing: 9, NonFinite: 1},
		{Name: "volume", Group: "size", Missing: 2, NonFinite: 1, Inexact: 1, MaxRelError: 1. / 16777217},
	}, r.Columns)
	require.Equal(t, []convert.SkippedColumn{{Name: "note", Why: "not among --columns"}}, r.SkippedColumns)
	require.Equal(t, []convert.Gap{{From: day(2), To: day(12), Tickers: 1}, {From: day(12), To: day(14), Tickers: 1}}, r.Gaps)
	require.Equal(t, day(1), *r.TimeMin)
	require.Equal(t, day(14), *r.TimeMax)
	require.Len(t, r.Hints, 3)
	require.Contains(t, r.Hints[0], `column "hole" of group "features" holds no value`)
	require.Contains(t, r.Hints[1], "--max-gap")
	require.Contains(t, r.Hints[2], "--align 64")

	info, err := os.Stat(s.Path())
	require.NoError(t, err)
	require.Equal(t, s.Path(), r.Output)
	require.Equal(t, info.Size(), r.Bytes)
	require.Positive(t, r.Padding)
	require.Positive(t, r.Index)
	require.Equal(t, convert.LookbackUse{Lookback: 2, Windows: 0, TooShort: []string{"A", "B"}}, *r.Lookback)

	b, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	golden(t, "report.json", b, o.Inputs[0]+string(filepath.Separator), filepath.Dir(r.Output)+string(filepath.Separator))
}

func TestProvenance(t *testing.T) {
	o := crafted(t)
	o.Targets, o.Zone, o.MaxGap, o.TimeFormat = []string{"volume:3"}, "Europe/Berlin", 36*time.Hour, "%Y-%m-%d"
	o.Groups = nil
	_, s := run(t, o)
	b, err := s.Provenance()
	require.NoError(t, err)
	golden(t, "provenance.json", b)
}

func TestLargestGaps(t *testing.T) {
	// Equally spaced rows have no gaps, whatever the step, and one row has none either.
	r, _ := convertText(t, "date,ticker,x\n2024-01-01,A,1\n2024-01-08,A,2\n2024-01-15,A,3\n2024-01-08,B,3\n", convert.Options{Align: 64})
	require.Empty(t, r.Gaps)
	require.Empty(t, r.Hints)

	// Five are kept, the longest, and of those as long the earliest; tickers that share one are counted.
	text := "date,ticker,x\n"
	for _, ticker := range []string{"A", "B", "C"} {
		for _, d := range []string{"01", "02", "04", "06", "09", "10", "14", "15", "19", "21", "26", "28"} {
			if ticker != "C" || d != "09" {
				text += "2024-01-" + d + "," + ticker + ",1\n"
			}
		}
	}
	r, _ = convertText(t, text, convert.Options{})
	var got []string
	for _, g := range r.Gaps {
		got = append(got, g.From.Format("02")+"-"+g.To.Format("02")+strings.Repeat("*", g.Tickers))
	}
	require.Equal(t, []string{"21-26***", "06-10*", "10-14***", "15-19***", "06-09**"}, got)
	r, _ = convertText(t, text, convert.Options{MaxGap: time.Hour, Align: 64})
	require.Empty(t, r.Hints, "who has set a gap knows")
}

func TestTickerHints(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.csv", "date,Name,x\n2024-01-02,AA,1\n2024-01-03,AA,1\n")
	one, _ := run(t, convert.Options{Inputs: []string{filepath.Join(dir, "a.csv")}, Align: 64})
	require.Equal(t, []string{`tickers are named after the files; if column "Name" names tickers, use --ticker "Name"`}, one.Hints)
	write(t, dir, "b.csv", "date,Name,x\n2024-01-02,BB,1\n2024-01-03,BB,1\n")
	many, s := run(t, convert.Options{Inputs: []string{dir}, Align: 64})
	require.Equal(t, []string{`tickers are named after the files; column "Name" is the same throughout each file: --ticker "Name" takes them from it`}, many.Hints)
	require.Equal(t, []string{"a", "b"}, s.Tickers())
	none, _ := run(t, convert.Options{Inputs: []string{dir}, Ticker: "Name", Align: 64})
	require.Empty(t, none.Hints)
}

func TestTickerHintsOfSeveralFiles(t *testing.T) {
	hints := func(header, a, b string) []string {
		dir := t.TempDir()
		write(t, dir, "AAA.csv", header+"\n"+a)
		write(t, dir, "BBB.csv", header+"\n"+b)
		r, _ := run(t, convert.Options{Inputs: []string{dir}, Align: 64})
		return r.Hints
	}
	tick := []string{`tickers are named after the files; column "Tick" is the same throughout each file: --ticker "Tick" takes them from it`}
	require.Equal(t, tick, hints("date,x,dir,Tick", "2024-01-02,1,up,AAA\n2024-01-03,1,down,AAA\n", "2024-01-02,1,up,BBB\n2024-01-03,1,down,BBB\n"))
	require.Equal(t, tick, hints("date,x,venue,Tick", "2024-01-02,1,X,AAA\n", "2024-01-02,1,X,BBB\n"), "what is the same everywhere is no ticker")
	require.Empty(t, hints("date,x,venue", "2024-01-02,1,X\n", "2024-01-02,1,X\n"))
	require.Equal(t, []string{`tickers are named after the files; if column "dir" names tickers, use --ticker "dir"`},
		hints("date,x,dir", "2024-01-02,1,up\n2024-01-03,1,down\n", "2024-01-02,1,up\n"))

	// Of one file only a usual name says something.
	in := write(t, t.TempDir(), "AAA.csv", "date,x,dir\n2024-01-02,1,up\n2024-01-03,1,down\n")
	r, _ := run(t, convert.Options{Inputs: []string{in}, Align: 64})
	require.Empty(t, r.Hints)
}

// The report's windows are those that a reader finds.
func TestReportedWindows(t *testing.T) {
	r, s := run(t, convert.Options{Inputs: []string{prices}, Ticker: "Name", Targets: []string{"close"}, Lookback: 400})
	require.Equal(t, windows(t, s, reader.Query{Lookback: 400}), r.Lookback.Windows)
	require.Equal(t, 100*70, r.Lookback.Windows, "one row less, since targets are a row ahead")
	require.Empty(t, r.Lookback.TooShort)
	r, _ = run(t, convert.Options{Inputs: []string{prices}, Ticker: "Name", Lookback: 471})
	require.Len(t, r.Lookback.TooShort, 100)
	r, _ = run(t, convert.Options{Inputs: []string{prices}, Ticker: "Name", Columns: []string{}, Groups: []convert.Group{{Name: "p", Columns: []string{"open"}}}, Lookback: 470})
	require.Equal(t, 100, r.Lookback.Windows, "of the first group, if there are no features")
}

func TestTickersThatDifferByBlanks(t *testing.T) {
	path := write(t, t.TempDir(), "a.csv", "ticker,date,x\nA,2020-01-01,1\nA ,2020-01-01,2\nB ,2020-01-01,2\n")
	r, s := run(t, convert.Options{Inputs: []string{path}, Ticker: "ticker", Align: 64})
	require.Equal(t, []string{"A", "A ", "B "}, s.Tickers())
	require.Equal(t, []string{`tickers "A" and "A " differ only by blanks`}, r.Hints)
}
