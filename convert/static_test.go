package convert_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

const bars = "date,Symbol,x\n2024-01-02,A,1\n2024-01-02,NA,2\n2024-01-02,C,3\n"

// attribute reads an attribute back: texts, or numbers as %v writes them; empty is missing.
func attribute(t *testing.T, s *reader.Store, name string) (out []string) {
	t.Helper()
	for _, a := range s.Attributes() {
		if a.Name != name {
			continue
		}
		for i := range s.Tickers() {
			text, ok := a.Text(i)
			if v := a.Number(i); !ok && !math.IsNaN(v) {
				text = fmt.Sprint(v)
			}
			out = append(out, text)
		}
		return out
	}
	require.Fail(t, "no such attribute", name)
	return nil
}

func TestStatic(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir, "bars.csv", bars)
	file := write(t, dir, "static.csv", "name,symbol,beta,sic,sector,listed,empty,shares\n"+
		"Company A,A,1.1,0100,NA,1999-01-02,,\"1,234,567,891\"\n"+
		"Company Z,Z,nan,5,Oil,1999-01-02,,\"5,000,000\"\n"+
		"Not available,NA,,9999,,2001-02-03,,\"16,777,217\"\n")
	r, s := run(t, convert.Options{Inputs: []string{dir}, Ticker: "Symbol", Static: file})
	require.Equal(t, []string{"A", "C", "NA"}, s.Tickers(), "the file of attributes is no input")
	require.Equal(t, []string{"Company A", "", "Not available"}, attribute(t, s, "name"))
	require.Equal(t, []string{"1.1", "", ""}, attribute(t, s, "beta"), "as a float64")
	require.Equal(t, []string{"0100", "", "9999"}, attribute(t, s, "sic"), "codes with leading zeros are texts")
	require.Equal(t, []string{"NA", "", ""}, attribute(t, s, "sector"), "NA is a text")
	require.Equal(t, []string{"1999-01-02", "", "2001-02-03"}, attribute(t, s, "listed"))
	require.Equal(t, []string{"1.234567891e+09", "", "1.6777217e+07"}, attribute(t, s, "shares"))
	require.Equal(t, &convert.StaticReport{
		Files: []string{"static.csv"}, Rows: 3, Unknown: 1, UnknownTickers: []string{"Z"}, Without: 1, WithoutTickers: []string{"C"},
		Attributes: []convert.AttributeReport{
			{Name: "name", Kind: "text", Tickers: 2}, {Name: "beta", Kind: "number", Tickers: 1}, {Name: "sic", Kind: "text", Tickers: 2},
			{Name: "sector", Kind: "text", Tickers: 1}, {Name: "listed", Kind: "text", Tickers: 2}, {Name: "shares", Kind: "number", Tickers: 2},
		},
		SkippedColumns: []convert.SkippedColumn{{Name: "empty", Why: "it holds no value"}},
	}, r.Static)

	// The column of tickers: of the same name, else a usual name, else named.
	for header, o := range map[string]convert.Options{
		"Symbol,name": {}, "ISIN,n": {}, "n,Ticker": {}, "a,b": {StaticTicker: "a"}, "symbol,Key": {StaticTicker: "Key"},
	} {
		names := strings.Split(header, ",")
		key := 0
		if names[1] == "Ticker" || names[1] == "Key" {
			key = 1
		}
		row := [2]string{"v", "v"}
		row[key] = "A"
		o.Inputs, o.Ticker, o.Static = []string{in}, "Symbol", write(t, t.TempDir(), "s.tsv", strings.ReplaceAll(header, ",", "\t")+"\n"+row[0]+"\t"+row[1]+"\n")
		_, s := run(t, o)
		require.Equal(t, []string{"v", "", ""}, attribute(t, s, names[1-key]), header)
	}
}

func TestStaticThatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"twice":     {"Symbol,x\nA,1\nC,1\nA,1\n", `s.csv:4: column "Symbol": "A" comes twice: `},
		"no ticker": {"Symbol,x\nA,1\n,1\n", `s.csv:3: column "Symbol": is a ticker that is empty`},
		"number":    {"Symbol,x\nA,1\nC,2\nNA,oops\nD,3\nE,3\n", `s.csv:4: column "x": "oops" is not a number`},
		"no column": {"a,b\nA,1\n", `s.csv: none of its columns ("a", "b") is called like one of tickers; name it with --static-ticker`},
		"others":    {"Symbol,x\nX,1\nY,2\n", `none of its 2 tickers, such as "X", is in the inputs, which have "A", "C", "NA"`},
		"no rows":   {"Symbol,x\n", `s.csv: holds no row`},
		"text":      {"Symbol,x\nA,\xff\n", `not valid UTF-8`},
	} {
		dir := t.TempDir()
		o := convert.Options{Inputs: []string{write(t, dir, "in.csv", bars)}, Ticker: "Symbol", Static: write(t, dir, "s.csv", c.text)}
		require.ErrorContains(t, fails(t, "", o), c.says, name)
	}
	dir := t.TempDir()
	o := convert.Options{Inputs: []string{write(t, dir, "in.csv", bars)}, Ticker: "Symbol", Static: write(t, dir, "s.csv", "Symbol,x\nA,1\n"), StaticTicker: "symbol"}
	require.ErrorIs(t, fails(t, "", o), reader.ErrNotFound)
	o.StaticTicker, o.Static = "", dir+"/none.csv"
	require.ErrorContains(t, fails(t, "", o), "attributes: ")

	var b strings.Builder
	b.WriteString("Symbol,x\n")
	for i := range 30_000 {
		fmt.Fprintf(&b, "T%d,%s\n", i, strings.Repeat("x", 100))
	}
	o.Static, o.Memory = write(t, dir, "s.csv", b.String()), 16<<20
	err := fails(t, "", o)
	var row *ingest.RowError
	require.ErrorAs(t, err, &row)
	require.ErrorContains(t, err, "raise --memory")
}
