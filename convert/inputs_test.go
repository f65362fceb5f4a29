package convert_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

func TestRowsInAnyOrder(t *testing.T) {
	text := "date,ticker,x\n2024-01-04,A,4\n2024-01-03,A,3\n2024-01-02,A,2\n2024-01-02,B,2\n2024-01-03,B,3\n"
	r, s := convertText(t, text, convert.Options{})
	requireSame(t, truth(t, strings.NewReader(text), "ticker", "date", time.DateOnly, "x"), contents(t, s))
	require.Equal(t, 1, r.UnsortedTickers, "only A")
}

func TestTickersSurvive(t *testing.T) {
	tickers := []string{
		"NA", "NaN", "nan", "TRUE", "INF", "null", "000001", "1", "1e5", "100000", "BRK.B", "BTC/USDT", "CON", "Ärzte", "日経",
		"A", "A ", " A", "a", "-", ".", `quo"te`, "com,ma", "two\nlines", "^BVSP", strings.Repeat("é", 127) + "x", "👩‍🚀",
	}
	var b strings.Builder
	b.WriteString("date,ticker,x\n")
	for i, name := range tickers {
		fmt.Fprintf(&b, "2024-01-02,\"%s\",%d\n", strings.ReplaceAll(name, `"`, `""`), i)
	}
	_, s := convertText(t, b.String(), convert.Options{})
	require.ElementsMatch(t, tickers, s.Tickers())
	requireSame(t, truth(t, strings.NewReader(b.String()), "ticker", "date", time.DateOnly, "x"), contents(t, s))

	for _, name := range []string{"", strings.Repeat("x", 256), "\xff"} {
		err := fails(t, "date,ticker,x\n2024-01-02,A,1\n2024-01-02,"+name+",1\n", convert.Options{Ticker: "ticker"})
		require.ErrorContains(t, err, "in.csv:3: column \"ticker\": ")
	}
}

func TestTickersFromFileNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"NA.csv", "000001.csv", "BRK.B.csv", "Ärzte.CSV"} {
		write(t, dir, name, "date,x\n2024-01-02,1\n")
	}
	_, s := run(t, convert.Options{Inputs: []string{dir}})
	require.Equal(t, []string{"000001", "BRK.B", "NA", "Ärzte"}, s.Tickers())
}

func TestEmptyFilesAreTickersWithoutRows(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "A.csv", "date,x\n2024-01-02,1\n")
	write(t, dir, "0.csv", "")
	write(t, dir, "HEADER.csv", "date,x\n")
	write(t, dir, "BAD.csv", "date,x\n2024-01-02,oops\n")
	write(t, dir, "notes.md", "not data")
	r, s := run(t, convert.Options{Inputs: []string{dir}, Lookback: 1, Columns: []string{"x"}, SkipBad: true})
	require.Equal(t, []string{"0", "A", "BAD", "HEADER"}, s.Tickers(), "one for each file")
	require.EqualValues(t, 1, r.RowsKept)
	require.Equal(t, []string{"0.csv", "HEADER.csv"}, r.EmptyFiles)
	require.Equal(t, []string{"notes.md"}, r.SkippedFiles)
	require.Equal(t, []string{"0", "BAD", "HEADER"}, r.Lookback.TooShort)
	require.Equal(t, 1, r.Lookback.Windows)
}

func TestEmptyFilesBesideATickerColumn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x.csv", "date,ticker,x\n2024-01-02,A,1\n")
	write(t, dir, "y.csv", "date,ticker,x\n")
	r, s := run(t, convert.Options{Inputs: []string{dir}, Ticker: "ticker"})
	require.Equal(t, []string{"y.csv"}, r.EmptyFiles)
	require.Equal(t, []string{"A"}, s.Tickers())
}

func TestUnusableInputs(t *testing.T) {
	dir := t.TempDir()
	empty := write(t, dir, "empty/e.csv", "")
	header := write(t, dir, "header/h.csv", "date,x\n")
	write(t, dir, "none/readme.md", "no data")
	good := write(t, dir, "good/g.csv", "date,x\n2024-01-02,1\n")
	other := write(t, dir, "other/o.csv", "date,y\n2024-01-02,1\n")
	for name, c := range map[string]struct {
		inputs []string
		says   string
	}{
		"empty":             {[]string{empty}, "holds no row"},
		"only a header":     {[]string{header}, "holds no row"},
		"both":              {[]string{empty, header}, "the inputs hold no row"},
		"no data in folder": {[]string{filepath.Join(dir, "none")}, "holds no file of data (.csv"},
		"other columns":     {[]string{good, other}, `has other columns than`},
	} {
		err := fails(t, "", convert.Options{Inputs: c.inputs})
		var unusable *ingest.UnusableError
		require.ErrorAs(t, err, &unusable, name)
		require.ErrorContains(t, err, c.says, name)
	}
	for _, path := range []string{filepath.Join(dir, "absent.csv"), filepath.Join(dir, "absent*.csv")} {
		err := fails(t, "", convert.Options{Inputs: []string{path}})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, path)
	}
}

func TestFolderWithLinksToNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "A.csv", "date,x\n2024-01-02,1\n")
	write(t, dir, "sub/B.csv", "")
	for _, name := range []string{".#A.csv", "readme.lnk"} {
		if os.Symlink("user@host.123", filepath.Join(dir, name)) != nil {
			t.Skip("no links here")
		}
	}
	r, s := run(t, convert.Options{Inputs: []string{dir}})
	require.Equal(t, []string{"A"}, s.Tickers())
	require.Equal(t, []string{".#A.csv", "readme.lnk", "sub/"}, r.SkippedFiles)
}

func TestBadTimeFormat(t *testing.T) {
	for _, f := range []string{"%Q", "foo"} {
		var usage *convert.UsageError
		err := fails(t, "date,x\n2024-01-02,1\n", convert.Options{TimeFormat: f})
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, fmt.Sprintf("time format %q: ", f))
	}
}

// Columns that the header doesn't name are stored only if they are asked for.
func TestUnnamedColumns(t *testing.T) {
	in := write(t, t.TempDir(), "in.csv", ",date,x,\n0,2024-01-02,5,\n1,2024-01-03,6,\n")
	r, s := run(t, convert.Options{Inputs: []string{in}})
	require.Equal(t, []string{"features=x"}, groups(s))
	const why = "the header has no name for it; --columns stores it under this one"
	require.Equal(t, []convert.SkippedColumn{{Name: "column 1", Why: why}, {Name: "column 4", Why: why}}, r.SkippedColumns)
	_, s = run(t, convert.Options{Inputs: []string{in}, Columns: []string{"x", "column 1"}})
	require.Equal(t, []string{"features=x,column 1"}, groups(s))
	err := fails(t, "date,\n2024-01-02,5\n", convert.Options{})
	require.ErrorContains(t, err, `has no numeric column: "column 2" is none, the header has no name for it`)
}

func TestBadRows(t *testing.T) {
	for name, c := range map[string]struct {
		text, says string
		line       int64
	}{
		"few cells":      {"date,x\n2024-01-02,1\n2024-01-03\n", "has 1 cell, while the header has 2", 3},
		"many cells":     {"date,x\n2024-01-02,1\n2024-01-03,1,2\n", "has 3 cells, while the header has 2", 3},
		"number":         {"date,x\n2024-01-02,1\n2024-01-03,1_000\n", `column "x": "1_000" is not a number`, 3},
		"date":           {"date,x\n2024-01-02,1\n2024-01-33,1\n", `column "date": "2024-01-33" is not a time like`, 3},
		"no date":        {"date,x\n2024-01-02,1\n,1\n", `column "date": the time is empty`, 3},
		"mixed dates":    {"date,x\n2024-01-02,1\n2024-01-03 09:30,1\n", "has a time of day, while the column has none", 3},
		"naive and not":  {"time,x\n2024-01-02 10:00,1\n2024-01-03 10:00Z,1\n", "has a UTC offset, while the column has none", 3},
		"year too large": {"date,x\n2024-01-02,1\n2924-01-03,1\n", "outside the years 1677 to 2262", 3},
	} {
		// Named, since a column is text if one of its first cells is.
		err := fails(t, c.text, convert.Options{Columns: []string{"x"}})
		var row *ingest.RowError
		require.ErrorAs(t, err, &row, name)
		require.Equal(t, c.line, row.Line, name)
		require.ErrorContains(t, err, c.says, name)

		in := write(t, t.TempDir(), "in.csv", c.text)
		r, _ := run(t, convert.Options{Inputs: []string{in}, Columns: []string{"x"}, SkipBad: true})
		require.EqualValues(t, 1, r.RowsSkipped, name)
		require.EqualValues(t, 1, r.RowsKept, name)
		require.Equal(t, row.Error(), strings.Replace(r.FirstSkipped, in, row.Path, 1), name)
	}
}

func TestBadRowsSkippedByChoice(t *testing.T) {
	r, s := convertText(t, "date,ticker,x\n2024-01-02,A,1\n2024-01-03,A,oops\n2024-01-04,A\n2024-01-05,A,5\n",
		convert.Options{Columns: []string{"x"}, SkipBad: true})
	require.EqualValues(t, 2, r.RowsRead)
	require.EqualValues(t, 2, r.RowsKept)
	require.EqualValues(t, 2, r.RowsSkipped)
	require.Contains(t, r.FirstSkipped, `in.csv:3: column "x": "oops" is not a number`)
	require.EqualValues(t, 2, s.Rows(0))
}

// A bad number stops the conversion also where the columns were not named: the column is not taken for text.
func TestBadNumberInAnUnnamedColumn(t *testing.T) {
	err := fails(t, "date,open,close\n2024-01-02,1,5\n2024-01-03,2,oops\n2024-01-04,3,7\n", convert.Options{})
	var row *ingest.RowError
	require.ErrorAs(t, err, &row)
	require.EqualValues(t, 3, row.Line)
	require.ErrorContains(t, err, `column "close": "oops" is not a number`)
}

func TestAmbiguousDates(t *testing.T) {
	err := fails(t, "date,x\n03/04/2019,1\n04/04/2019,2\n", convert.Options{})
	var row *ingest.RowError
	require.ErrorAs(t, err, &row)
	require.ErrorContains(t, err, `in.csv:2: column "date": "03/04/2019" leaves open whether day or month comes first`)
	require.ErrorContains(t, err, "--time-format")

	_, s := convertText(t, "date,ticker,x\n03/04/2019,A,1\n25/04/2019,A,2\n", convert.Options{})
	require.Equal(t, time.Date(2019, 4, 3, 0, 0, 0, 0, time.UTC), contents(t, s)["A"].times[0], "the column decides")
	_, s = convertText(t, "date,ticker,x\n03/04/2019,A,1\n", convert.Options{TimeFormat: "%m/%d/%Y"})
	require.Equal(t, time.Date(2019, 3, 4, 0, 0, 0, 0, time.UTC), contents(t, s)["A"].times[0], "the option decides")
}

func TestZone(t *testing.T) {
	text := "time,ticker,x\n2024-01-02 09:30,A,1\n2024-07-01 09:30,A,2\n"
	_, s := convertText(t, text, convert.Options{Zone: "America/New_York"})
	require.Equal(t, "America/New_York", s.Meta().Schema.Zone)
	require.Equal(t, []time.Time{
		time.Date(2024, 1, 2, 14, 30, 0, 0, time.UTC), time.Date(2024, 7, 1, 13, 30, 0, 0, time.UTC),
	}, contents(t, s)["A"].times)
	_, s = convertText(t, text, convert.Options{})
	require.Empty(t, s.Meta().Schema.Zone)
	require.Equal(t, 9, contents(t, s)["A"].times[0].Hour())

	err := fails(t, "time,x\n2024-03-10 02:30,1\n", convert.Options{Zone: "America/New_York"})
	require.ErrorContains(t, err, "does not exist in America/New_York")
	for _, zone := range []string{"Mars/Olympus", "Local"} {
		var usage *convert.UsageError
		require.ErrorAs(t, fails(t, text, convert.Options{Zone: zone, Ticker: "ticker"}), &usage)
	}
}

func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir, "in.csv", "date,x\n2024-01-02,1\n")
	var usage *convert.UsageError
	out := write(t, dir, "out.wst", "old")

	_, err := convert.Run(t.Context(), convert.Options{Inputs: []string{in}})
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "-o")

	_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{in}, Output: out})
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "--force")
	old, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "old", string(old))
	run(t, convert.Options{Inputs: []string{in}, Output: out, Overwrite: true})

	link := filepath.Join(dir, "link.csv")
	if os.Symlink(in, link) == nil {
		_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{in}, Output: link, Overwrite: true})
		require.ErrorAs(t, err, &usage)
	}
	_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{dir}, Output: in, Overwrite: true})
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "both input and output")

	_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{in}, Output: filepath.Join(dir, "no", "out.wst")})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "the output's folder")
	_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{in}, Output: filepath.Join(in, "out.wst")})
	require.ErrorContains(t, err, "not a")
	_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{in}, Output: dir, Overwrite: true})
	require.ErrorContains(t, err, "is a folder")
	requireAlone(t, out)
}

// An output in the folder of its inputs is none of them, and is not reported as a file of another kind.
func TestOutputBesideInputs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "A.csv", "date,x\n2024-01-02,1\n")
	o := convert.Options{Inputs: []string{dir}, Output: filepath.Join(dir, "out.wst"), Overwrite: true}
	first := bytesOf(t, o)
	require.Equal(t, first, bytesOf(t, o))
	_, err := convert.Run(t.Context(), convert.Options{Inputs: []string{dir}, Output: filepath.Join(dir, "A.csv"), Overwrite: true})
	require.Error(t, err)
}

func TestOutputDeviceIsKept(t *testing.T) {
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Skip("no such device here")
	}
	in := write(t, t.TempDir(), "in.csv", "date,x\n2024-01-02,1\n")
	_, err := convert.Run(t.Context(), convert.Options{Inputs: []string{in}, Output: os.DevNull, Overwrite: true})
	require.ErrorContains(t, err, "not a regular file")
}

func TestUnknownColumns(t *testing.T) {
	const text = "date,ticker,open,close\n2024-01-02,A,1,2\n"
	for name, c := range map[string]struct {
		o    convert.Options
		near string
	}{
		"columns":    {convert.Options{Columns: []string{"open", "clse"}}, "close"},
		"ticker":     {convert.Options{Ticker: "tickr"}, "ticker"},
		"time":       {convert.Options{Time: "Dates"}, "date"},
		"target":     {convert.Options{Targets: []string{"clos"}}, "close"},
		"with reach": {convert.Options{Targets: []string{"clos:5"}}, "close"},
		"reach":      {convert.Options{Targets: []string{"close:tick"}}, "ticker"},
		"group":      {convert.Options{Groups: []convert.Group{{Name: "g", Columns: []string{"opn"}}}}, "open"},
		"mask":       {convert.Options{Masks: []string{"pen"}}, "open"},
		"break":      {convert.Options{Breaks: []convert.Break{{Name: "b", Column: "tcker"}}}, "ticker"},
	} {
		err := fails(t, text, c.o)
		require.True(t, errors.Is(err, reader.ErrNotFound), "%s: %s", name, err)
		if name != "reach" {
			require.Regexp(t, `did you mean "?`+c.near+`"?\?`, err.Error(), name)
		}
		require.ErrorContains(t, err, "in.csv", name)
	}
}

func TestNoTime(t *testing.T) {
	var unusable *ingest.UnusableError
	require.ErrorAs(t, fails(t, "a,b\n1,2\n", convert.Options{}), &unusable)
	require.ErrorAs(t, fails(t, "date,time,b\n2024-01-02,2024-01-02,2\n", convert.Options{}), &unusable)
	require.ErrorContains(t, unusable, "--time")
}

func TestNoNumbers(t *testing.T) {
	var unusable *ingest.UnusableError
	err := fails(t, "date;close\n2024-01-02;much\n2024-01-03;more\n", convert.Options{})
	require.ErrorAs(t, err, &unusable)
	require.ErrorContains(t, err, `in.csv: has no numeric column: "close" is none, it holds text, such as "much"`)
	r, _ := convertText(t, "date,ticker,x,note\n2024-01-02,A,1,\"a, b\"\n", convert.Options{})
	require.Equal(t, []convert.SkippedColumn{{Name: "note", Why: `it holds text, such as "a, b"`}}, r.SkippedColumns)
}

func TestNumbersAndTimesAsPeopleWriteThem(t *testing.T) {
	from := func(text string, o convert.Options) (*convert.Report, map[string]series) {
		o.Inputs = []string{write(t, t.TempDir(), "in.csv", text)}
		r, s := run(t, o)
		return r, contents(t, s)
	}
	r, s := from("date;time;close;volume;change\n2024-01-02;0930;1.234,5;1,2M;3,3%\n2024-01-02;1600;1.300,25;950;-0,5%\n", convert.Options{Zone: "America/New_York"})
	for name, want := range map[string][]float32{"close": {1234.5, 1300.25}, "volume": {1.2e6, 950}, "change": {0.033, -0.005}} {
		require.Equal(t, []uint32{math.Float32bits(want[0]), math.Float32bits(want[1])}, s["in"].cells[name])
	}
	require.Equal(t, "%Y-%m-%d %H%M", r.TimeFormat)
	require.Equal(t, time.Date(2024, 1, 2, 14, 30, 0, 0, time.UTC), *r.TimeMin)
	var styles []string
	for _, c := range r.Columns {
		styles = append(styles, c.Style)
	}
	require.Equal(t, []string{"decimal comma, points between thousands", "decimal comma", "decimal comma, percent, divided by 100"}, styles)

	const twice = "when,x\n2024-11-03 01:30,1\n2024-11-03 02:30,2\n"
	err := fails(t, twice, convert.Options{Zone: "America/New_York"})
	require.ErrorContains(t, err, "in.csv:2: ")
	require.ErrorContains(t, err, "--on-ambiguous-time")
	r, _ = from(twice, convert.Options{Zone: "America/New_York", OnAmbiguousTime: "last"})
	require.Equal(t, int64(1), r.AmbiguousTimes)
	require.Equal(t, time.Date(2024, 11, 3, 6, 30, 0, 0, time.UTC), *r.TimeMin)

	const open = "date,volume\n2024-01-02,\"1,234\"\n"
	require.ErrorContains(t, fails(t, open, convert.Options{}), "--decimal point or --decimal comma")
	for _, o := range []convert.Options{{Decimal: "x"}, {Thousands: "x"}, {Decimal: "comma", Thousands: "comma"}, {OnAmbiguousTime: "x"}} {
		var usage *convert.UsageError
		require.ErrorAs(t, fails(t, open, o), &usage)
	}
	r, _ = from("day,clock,x\n2024-01-02,34200000,1\n", convert.Options{Time: "day", TimeOfDay: "clock", TimeFormat: "ms-of-day"})
	require.Equal(t, time.Date(2024, 1, 2, 9, 30, 0, 0, time.UTC), *r.TimeMin)
}
