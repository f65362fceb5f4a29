package convert_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

// TestAnyWideTable converts the same rows as a wide table and as a long one.
func TestAnyWideTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pattern := rapid.SampledFrom([]string{"{ticker}:{column}", "{ticker}.{column}", "{column}_{ticker}", "('{column}', '{ticker}')"}).Draw(t, "pattern")
		tickers := []string{"A", "BRK.B", "日経", "T"}[:rapid.IntRange(1, 4).Draw(t, "tickers")]
		columns := []string{"open", "vol", "live"}
		type cell struct{ ticker, column string }
		var order []cell
		for _, ticker := range tickers {
			for _, c := range columns {
				if r.IntN(5) > 0 || c == "open" {
					order = append(order, cell{ticker, c})
				}
			}
		}
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		wide, long := "session,vix,time", "time,ticker,open,vol,live,vix,session\n"
		for _, c := range order {
			name := strings.NewReplacer("{ticker}", c.ticker, "{column}", c.column).Replace(pattern)
			wide += `,"` + name + `"`
		}
		wide += "\n"
		rows, absent := int64(0), int64(0)
		for i := range rapid.IntRange(1, 20).Draw(t, "rows") {
			session, vix := []string{"am", "pm"}[r.IntN(2)], []string{"", "12.5", "9"}[r.IntN(3)]
			at := time.Unix(int64(i*3600), 0).UTC().Format("2006-01-02 15:04")
			wide += session + "," + vix + "," + at
			cells := map[cell]string{}
			for _, c := range order {
				v := []string{"", "", "nan", "1", "0", "2.7"}[r.IntN(6)]
				cells[c] = v
				wide += "," + v
			}
			wide += "\n"
			for _, ticker := range tickers {
				here := false
				row := at + "," + ticker
				for _, c := range columns {
					v := cells[cell{ticker, c}]
					here = here || v != "" && v != "nan" && (c != "live" || v != "0") // a mask's 0 is missing
					row += "," + v
				}
				if here {
					long += row + "," + vix + "," + session + "\n"
					rows++
				} else {
					absent++
				}
			}
		}
		if rows == 0 {
			t.Skip("no row")
		}
		o := convert.Options{
			Output: filepath.Join(dir, "wide.wst"), Time: "time", Columns: []string{"vix", "open"}, Targets: []string{"vol:3"}, Masks: []string{"live"},
			Categories: []string{"session"}, Breaks: []convert.Break{{Name: "session", Column: "session"}}, MaxGap: time.Hour,
			Inputs: []string{filepath.Join(dir, "wide.csv")}, Wide: pattern,
		}
		if len(order) == len(tickers) { // nothing but open
			o.Targets, o.Masks = nil, nil
		}
		lacks := func(column string) bool {
			for _, c := range order {
				if c.column == column {
					return false
				}
			}
			return true
		}
		if lacks("vol") || lacks("live") {
			t.Skip("a column is of no ticker")
		}
		require.NoError(t, os.WriteFile(o.Inputs[0], []byte(wide), 0o666))
		o.Inject(nil, rapid.Int64Range(1, 5000).Draw(t, "memory"))
		got, err := convert.Run(context.Background(), o)
		require.NoError(t, err, wide)
		s, err := reader.Open(o.Output, &reader.Options{Verify: true})
		require.NoError(t, err)
		defer s.Close()
		require.Len(t, s.Tickers(), len(tickers), "also those without a row")
		require.Equal(t, &convert.WideReport{Rows: int64(strings.Count(wide, "\n") - 1), Absent: absent}, got.Wide)
		require.Equal(t, rows, got.RowsKept)

		o.Wide, o.Ticker, o.Inputs, o.Output = "", "ticker", []string{filepath.Join(dir, "long.csv")}, filepath.Join(dir, "long.wst")
		require.NoError(t, os.WriteFile(o.Inputs[0], []byte(long), 0o666))
		want, err := convert.Run(context.Background(), o)
		require.NoError(t, err)
		for i := range want.Columns {
			require.Equal(t, want.Columns[i].Missing, got.Columns[i].Missing, want.Columns[i].Name)
		}
		if s2, err := reader.Open(o.Output, nil); err == nil {
			names := s2.Tickers()
			require.NoError(t, s2.Close())
			if len(names) == len(tickers) {
				require.Equal(t, want.Digest, got.Digest)
			}
		}
	})
}

func TestWideColumnsAreTickers(t *testing.T) {
	const text = "date,note,T,GM,column 5,\n2024-01-02,a,1,,,7\n2024-01-03,b,2,5,,8\n2024-01-04,,,,,\n"
	in := write(t, t.TempDir(), "in.csv", text)
	r, s := run(t, convert.Options{Inputs: []string{in}, Wide: "close", Align: 64})
	require.Equal(t, []string{"features=close"}, groups(s))
	require.Equal(t, []string{"GM", "T", "column 5"}, s.Tickers())
	require.EqualValues(t, 3, r.RowsKept)
	require.EqualValues(t, 3, r.RowsRead)
	require.Equal(t, &convert.WideReport{Rows: 3, Absent: 6}, r.Wide)
	require.Zero(t, r.Columns[0].Missing)
	require.Equal(t, []convert.SkippedColumn{
		{Name: "note", Why: `it holds text, such as "a"`}, {Name: "column 6", Why: "the header has no name for it; --columns stores it under this one"},
	}, r.SkippedColumns)
	require.Empty(t, r.Hints)

	// A column that is named is no ticker, but every one's; a ticker is called like the column of its cells.
	r, s = run(t, convert.Options{Inputs: []string{in}, Wide: "T", Columns: []string{"T", "GM"}, Categories: []string{"note"}, Align: 64})
	require.Equal(t, []string{"features=T,GM", "categories=note"}, groups(s))
	require.Equal(t, []string{"T", "column 5"}, s.Tickers())
	require.EqualValues(t, 2, r.RowsKept)
	require.Equal(t, []string{"a", "b"}, texts(t, s, 0, "note"))
	require.EqualValues(t, 1, r.Columns[1].Missing)
}

func TestWideWithGapsInTheHeader(t *testing.T) {
	const text = "date,A:open,A:vol,B:open,B:kind,mid\n2024-01-02,1,2,3,x,5\n"
	in := write(t, t.TempDir(), "in.csv", text)
	r, s := run(t, convert.Options{Inputs: []string{in}, Wide: "{ticker}:{column}", Align: 64})
	require.Equal(t, []string{"features=open,vol"}, groups(s))
	require.Equal(t, []uint32{missing}, contents(t, s)["B"].cells["vol"])
	require.Equal(t, []string{`ticker "A" has no column "kind", so its cells are missing; 2 of 2 tickers lack columns`}, r.Hints)
	require.Equal(t, []convert.SkippedColumn{
		{Name: "mid", Why: "it is of no ticker; --columns stores it with the rows of each"}, {Name: "kind", Why: `it holds text, such as "x"`},
	}, r.SkippedColumns)
}

func TestWideThatCanNotBe(t *testing.T) {
	const text = "date,A:open,B:open,note\n2024-01-02,1,2,x\n2024-01-02,3,4,y\n"
	for name, c := range map[string]struct {
		o    convert.Options
		says string
	}{
		"ticker column": {convert.Options{Wide: "close", Ticker: "note"}, `none in column "note"`},
		"one mark":      {convert.Options{Wide: "{ticker}:"}, "must have {ticker} and {column} once each"},
		"nothing":       {convert.Options{Wide: "{ticker}{column}"}, "with something between"},
		"twice":         {convert.Options{Wide: "{ticker}:{column}:{ticker}"}, "once each"},
		"no match":      {convert.Options{Wide: "{ticker}/{column}"}, `in.csv: has no column with a name like {ticker}/{column}; there are "date", "A:open"`},
		"twice a time":  {convert.Options{Wide: "{ticker}:{column}"}, `in.csv:3: column "date": "2024-01-02T00:00:00Z" comes twice for ticker "A"`},
		"category":      {convert.Options{Wide: "{ticker}:{column}", Categories: []string{"open"}}, `column "open" of a wide table can't hold categories`},
		"break":         {convert.Options{Wide: "{ticker}:{column}", Columns: []string{"open"}, Breaks: []convert.Break{{Name: "k", Column: "open"}}}, `column "open" of a wide table can't make breaks`},
		"label end":     {convert.Options{Wide: "{ticker}:{column}", Targets: []string{"open:open"}}, `can't hold the label ends`},
		"a part":        {convert.Options{Wide: "{ticker}:{column}", Columns: []string{"A:open"}}, `column "A:open" is of ticker A and a feature`},
	} {
		require.ErrorContains(t, fails(t, text, c.o), c.says, name)
	}
	err := fails(t, "date,"+strings.Repeat("x", 256)+"\n2024-01-02,1\n", convert.Options{Wide: "close"})
	var unusable *ingest.UnusableError
	require.ErrorAs(t, err, &unusable)
	require.ErrorContains(t, fails(t, "date,a\n2024-01-02,x\n", convert.Options{Wide: "close"}), "has no numeric column that could be a ticker")
}

// Thousands of tickers take no more memory than other tables.
func TestWideWithThousandsOfTickers(t *testing.T) {
	if testing.Short() {
		t.Skip("converts 2 million cells")
	}
	const tickers, rows = 4000, 500
	var b strings.Builder
	b.WriteString("date")
	for k := range tickers {
		fmt.Fprintf(&b, ",T%04d", k)
	}
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		b.WriteString("\n" + start.AddDate(0, 0, i).Format(time.DateOnly))
		for k := range tickers {
			if i < k%200 {
				b.WriteString(",")
			} else {
				fmt.Fprintf(&b, ",%d.5", (i*31+k*7)%5000)
			}
		}
	}
	in := write(t, t.TempDir(), "in.csv", b.String())
	r, s := run(t, convert.Options{Inputs: []string{in}, Wide: "close", Memory: 16 << 20, Align: 64})
	require.Equal(t, tickers, r.Tickers)
	require.EqualValues(t, tickers*rows, r.RowsKept+r.Wide.Absent)
	require.EqualValues(t, rows-199, s.Rows(199))
}

// wideTruth reads a wide CSV file with the standard library alone: the rows of each ticker. take gives ticker and column.
func wideTruth(t *testing.T, path, layout string, take func(name string) (ticker, column string)) (map[string]series, int64) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		in, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	rows, err := csv.NewReader(in).ReadAll()
	require.NoError(t, err)
	all, absent := map[string]series{}, int64(0)
	columns := map[string]bool{}
	for _, name := range rows[0] {
		if ticker, column := take(name); ticker != "" {
			all[ticker] = series{cells: map[string][]uint32{}}
			columns[column] = true
		}
	}
	for _, r := range rows[1:] {
		at, err := time.Parse(layout, r[0])
		require.NoError(t, err)
		for ticker, s := range all {
			bits, here := map[string]uint32{}, false
			for c := range columns {
				bits[c] = missing
			}
			for i, name := range rows[0] {
				if of, column := take(name); of == ticker && r[i] != "" {
					v, err := strconv.ParseFloat(r[i], 32)
					require.NoError(t, err)
					bits[column], here = math.Float32bits(float32(v)), true
				}
			}
			if !here {
				absent++
				continue
			}
			s.times = append(s.times, at)
			for c := range columns {
				s.cells[c] = append(s.cells[c], bits[c])
			}
			all[ticker] = s
		}
	}
	return all, absent
}

func TestWideFilesOfOthers(t *testing.T) {
	odd := filepath.Join("..", "testdata", "odd")
	split := func(mark string) func(string) (string, string) {
		return func(name string) (string, string) {
			ticker, column, ok := strings.Cut(name, mark)
			if !ok {
				return "", ""
			}
			return ticker, column
		}
	}
	for _, c := range []struct {
		file, wide string
		tickers    int
		absent     int64
		take       func(string) (string, string)
	}{
		{"48_wide_20_tickers_leading_nan.csv.gz", "close", 20, 9387, func(name string) (string, string) {
			if name == "date" {
				return "", ""
			}
			return name, "close"
		}},
		{"49_wide_colon_column_names_leading_empty.csv.gz", "{ticker}:{column}", 3, 2017, split(":")},
		{"35_prefixed_column_names_AAPL.Open.csv", "{ticker}.{column}", 1, 0, split(".")},
	} {
		path := filepath.Join(odd, c.file)
		want, absent := wideTruth(t, path, time.DateOnly, c.take)
		require.Equal(t, c.absent, absent, c.file)
		r, s := run(t, convert.Options{Inputs: []string{path}, Wide: c.wide})
		require.Len(t, s.Tickers(), c.tickers, c.file)
		require.Equal(t, absent, r.Wide.Absent, c.file)
		requireSame(t, want, contents(t, s))
	}
}
