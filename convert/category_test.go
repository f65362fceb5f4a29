package convert_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

// texts reads a column with categories back as texts; empty is missing.
func texts(t require.TestingT, s *reader.Store, ticker int, column string) (out []string) {
	names, err := s.Categories(column)
	require.NoError(t, err)
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	for g, group := range s.Meta().Schema.Groups {
		for c := range group.Columns {
			if group.Columns[c].Name != column {
				continue
			}
			cells, err := v.Series(ticker, g)
			require.NoError(t, err)
			for i := c; i < len(cells); i += len(group.Columns) {
				if math.Float32bits(cells[i]) == missing {
					out = append(out, "")
				} else {
					out = append(out, names[int(cells[i])])
				}
			}
		}
	}
	return out
}

func TestCategories(t *testing.T) {
	const text = "date,ticker,x,sector,rating\n2024-01-02,A,1,Tech,5\n2024-01-03,A,2,,3\n2024-01-04,A,3,NA,5\n2024-01-02,B,4,Energy,\n2024-01-03,B,5, Tech,10\n"
	r, s := convertText(t, text, convert.Options{Categories: []string{"sector", "rating"}})
	require.Equal(t, []string{"features=x", "categories=sector,rating"}, groups(s))
	names, _ := s.Categories("sector")
	require.Equal(t, []string{" Tech", "Energy", "NA", "Tech"}, names, "sorted by bytes, with NA and blanks as they are")
	require.Equal(t, []string{"Tech", "", "NA"}, texts(t, s, 0, "sector"))
	require.Equal(t, []string{"Energy", " Tech"}, texts(t, s, 1, "sector"))
	require.Equal(t, []string{"", "10"}, texts(t, s, 1, "rating"))
	require.EqualValues(t, 1, r.Columns[1].Missing)
	require.Equal(t, 4, *r.Columns[1].Categories)
	require.Nil(t, r.Columns[0].Categories)
	require.Empty(t, r.SkippedColumns)

	_, s = convertText(t, text, convert.Options{Categories: []string{"sector"}, Columns: []string{"rating", "sector", "x"}})
	require.Equal(t, []string{"features=rating,sector,x"}, groups(s), "in the group that names it")
	require.Equal(t, []string{"Tech", "", "NA"}, texts(t, s, 0, "sector"))
	_, s = convertText(t, text, convert.Options{Categories: []string{"sector"}, Targets: []string{"sector:1"}, Columns: []string{"x"}})
	require.Equal(t, []string{"features=x", "targets=sector"}, groups(s))

	// A break and a category of one column.
	_, s = convertText(t, text, convert.Options{Categories: []string{"sector"}, Breaks: []convert.Break{{Name: "k", Column: "sector"}}})
	require.Equal(t, []int64{1, 2}, breaks(t, s, "k"))
	require.Equal(t, []string{"Tech", "", "NA"}, texts(t, s, 0, "sector"))

	// Filled: with one of the categories, and with a new one.
	r, s = convertText(t, text, convert.Options{Categories: []string{"sector", "rating"}, Fills: []convert.Fill{
		{Column: "sector", Forward: true}, {Column: "rating", Value: "none"}}})
	require.Equal(t, []string{"Tech", "Tech", "NA"}, texts(t, s, 0, "sector"))
	require.Equal(t, []string{"none", "10"}, texts(t, s, 1, "rating"))
	require.Equal(t, 4, *r.Columns[2].Categories)
}

func TestCategoriesThatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		o    convert.Options
		says string
	}{
		"unknown": {convert.Options{Categories: []string{"sesion"}}, `did you mean "session"?`},
		"mask":    {convert.Options{Categories: []string{"tradable"}, Masks: []string{"tradable"}}, "is a mask"},
		"twice":   {convert.Options{Categories: []string{"session", "session"}}, "named twice"},
		"time":    {convert.Options{Categories: []string{"date"}}, `column "date" is the time and of categories`},
		"fill":    {convert.Options{Categories: []string{"session"}, Fills: []convert.Fill{{Column: "session", Value: "\xff"}}}, "not valid UTF-8"},
	} {
		c.o.Ticker = "ticker"
		require.ErrorContains(t, fails(t, wide, c.o), c.says, name)
	}
	for value, says := range map[string]string{
		strings.Repeat("x", 65536): "has 65536 bytes, and a category at most 65535",
		"\xff":                     "is not valid UTF-8",
	} {
		err := fails(t, "date,ticker,x,c\n2024-01-02,A,1,\n2024-01-03,A,1,"+value+"\n", convert.Options{Ticker: "ticker", Categories: []string{"c"}})
		var row *ingest.RowError
		require.ErrorAs(t, err, &row)
		require.EqualValues(t, 3, row.Line)
		require.ErrorContains(t, err, says)
	}
	// Texts that don't fit into memory end the conversion early.
	var b strings.Builder
	b.WriteString("date,ticker,x,c\n")
	for i := range 30_000 {
		fmt.Fprintf(&b, "2024-01-02,A,1,note %d\n", i)
	}
	err := fails(t, b.String(), convert.Options{Ticker: "ticker", Categories: []string{"c"}, Memory: 16 << 20})
	require.ErrorContains(t, err, "is one category too many: ")
	require.ErrorContains(t, err, "raise --memory")
}

// The same file comes out whatever the number of jobs and the memory, and it holds what the standard library reads.
func TestAnyCategories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pool := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9é日 ._-]{0,6}`), 1, 30, rapid.ID).Draw(t, "texts")
		text := "date,c,x,ticker\n"
		want := map[string][]string{}
		used := map[string]bool{}
		for i := range rapid.IntRange(1, 200).Draw(t, "rows") {
			ticker := string(rune('A' + r.IntN(3)))
			c := pool[r.IntN(len(pool))]
			want[ticker] = append(want[ticker], c)
			used[c] = c != ""
			text += fmt.Sprintf("2024-01-02 00:%02d:%02d,%s,%d,%s\n", i/60, i%60, c, i, ticker)
		}
		in := filepath.Join(dir, "in.csv")
		require.NoError(t, os.WriteFile(in, []byte(text), 0o666))
		var first []byte
		for jobs := 1; jobs <= 3; jobs += 2 {
			o := convert.Options{Inputs: []string{in}, Output: filepath.Join(dir, "out.wst"), Ticker: "ticker", Categories: []string{"c"}, Jobs: jobs, Overwrite: true}
			o.Inject(nil, int64(jobs*jobs*1000))
			_, err := convert.Run(context.Background(), o)
			require.NoError(t, err)
			got, err := os.ReadFile(o.Output)
			require.NoError(t, err)
			if first != nil {
				require.True(t, bytes.Equal(first, got))
			}
			first = got
		}
		s, err := reader.OpenBytes(first, &reader.Options{Verify: true})
		require.NoError(t, err)
		defer s.Close()
		names, _ := s.Categories("c")
		var all []string
		for c, yes := range used {
			if yes {
				all = append(all, c)
			}
		}
		slices.Sort(all)
		require.Equal(t, all, append([]string(nil), names...))
		for i, ticker := range s.Tickers() {
			require.Equal(t, want[ticker], texts(t, s, i, "c"))
		}
	})
}
