package convert_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
)

const twice = `date,ticker,x
2024-01-02,A,1
2024-01-03,A,2
2024-01-02,A,1
2024-01-03,A,7
2024-01-03,B,7
2024-01-03,A,8
`

func TestDuplicatesAreAnError(t *testing.T) {
	dir := t.TempDir()
	a := write(t, dir, "a.csv", "date,ticker,x\n2024-01-02,A,1\n2024-01-02,B,5\n")
	b := write(t, dir, "b.csv", "date,ticker,x\n2024-01-04,A,1\n\n2024-01-02,B,6\n")
	err := fails(t, "", convert.Options{Inputs: []string{b, a}, Ticker: "ticker"})
	var row *ingest.RowError
	require.ErrorAs(t, err, &row)
	require.Equal(t, b, row.Path)
	require.EqualValues(t, 4, row.Line)
	require.EqualError(t, err, b+`:4: column "date": "2024-01-02T00:00:00Z" comes twice for ticker "B": `+a+
		`:3 has another row; --on-duplicate first or last keeps one of them`)

	err = fails(t, "date,x\n2024-01-02,1\n2024-01-02,1.0\n", convert.Options{})
	require.ErrorContains(t, err, `in.csv:2 has the same row; --on-duplicate`)
}

func TestDuplicatesHintAtTheTickers(t *testing.T) {
	for text, column := range map[string]string{
		"date,Name,x\n2024-01-02,A,1\n2024-01-02,B,1\n":                          "Name",
		"date,exchange,Symbol,x\n2024-01-02,XN,A,1\n2024-01-02,XN,B,1\n":         "Symbol",
		"date,who,x\n2024-01-02,A,1\n2024-01-02,B,1\n":                           "who",
		"date,venue,who,x\n2024-01-02,X,A,1\n2024-01-02,X,B,1\n":                 "who",
		"date,ts_code,x\n20240102,000001,1\n20240102,000002,1\n":                 "ts_code",
		"date,exchange,code,x\n2024-01-02,XN,000001,1\n2024-01-02,XN,000002,1\n": "code",
	} {
		err := fails(t, text, convert.Options{})
		require.ErrorContains(t, err, `; if column "`+column+`" names tickers, use --ticker "`+column+`"; else --on-duplicate first or last keeps one of them`)
	}
}

func TestDuplicatesKeptByChoice(t *testing.T) {
	for on, want := range map[convert.OnDuplicate]string{
		convert.DuplicateFirst: "date,ticker,x\n2024-01-02,A,1\n2024-01-03,A,2\n2024-01-03,B,7\n",
		convert.DuplicateLast:  "date,ticker,x\n2024-01-02,A,1\n2024-01-03,A,8\n2024-01-03,B,7\n",
	} {
		r, s := convertText(t, twice, convert.Options{OnDuplicate: on})
		_, expected := convertText(t, want, convert.Options{})
		requireSame(t, contents(t, expected), contents(t, s))
		require.EqualValues(t, 6, r.RowsRead)
		require.EqualValues(t, 3, r.RowsKept)
		require.EqualValues(t, 3, r.Duplicates)
		require.EqualValues(t, 2, r.Contradictory)
		require.Equal(t, 1, r.UnsortedTickers)
	}
}

// What counts as contradictory is compared with the row that is kept.
func TestContradictoryDuplicates(t *testing.T) {
	for values, want := range map[string][2]int64{ // first, last
		"1 2 1":     {1, 1},
		"1 1 2":     {1, 2},
		"1 2 2":     {2, 1},
		"1 2 3 2":   {3, 2},
		"1 1 1":     {0, 0},
		"1 2 3 3 3": {4, 2},
	} {
		dir := t.TempDir()
		text := ""
		for i, v := range strings.Fields(values) {
			row := "2024-01-02,A," + v + "\n"
			text += row
			write(t, dir, strconv.Itoa(i)+".csv", "date,ticker,x\n2024-01-01,A,0\n"+row)
		}
		for i, on := range []convert.OnDuplicate{convert.DuplicateFirst, convert.DuplicateLast} {
			r, _ := convertText(t, "date,ticker,x\n"+text+"2024-01-03,A,5\n", convert.Options{OnDuplicate: on})
			require.Equal(t, want[i], r.Contradictory, "%s, %s", on, values)
			require.Zero(t, r.UnsortedTickers, "rows of one time are in order")
			o := convert.Options{Inputs: []string{dir}, Ticker: "ticker", OnDuplicate: on}
			o.Inject(nil, 1) // sorted on disk
			r, _ = run(t, o)
			require.Equal(t, want[i], r.Contradictory, "%s, %s", on, values)
		}
	}
}

func TestDuplicatesAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "2.csv", "date,ticker,x\n2024-01-02,A,2\n")
	write(t, dir, "1.csv", "date,ticker,x\n2024-01-02,A,1\n")
	write(t, dir, "10.csv", "date,ticker,x\n2024-01-02,A,10\n") // behind 1.csv, before 2.csv
	for on, want := range map[convert.OnDuplicate]string{convert.DuplicateFirst: "1", convert.DuplicateLast: "2"} {
		_, s := run(t, convert.Options{Inputs: []string{dir}, Ticker: "ticker", OnDuplicate: on})
		_, expected := convertText(t, "date,ticker,x\n2024-01-02,A,"+want+"\n", convert.Options{})
		requireSame(t, contents(t, expected), contents(t, s))
	}
}

// Two rows of one time in different units of writing are one time.
func TestDuplicatesAreOfInstants(t *testing.T) {
	err := fails(t, "time,x\n2024-01-02T10:00:00+01:00,1\n2024-01-02T09:00:00Z,2\n", convert.Options{})
	require.ErrorContains(t, err, `"2024-01-02T09:00:00Z" comes twice`)
}
