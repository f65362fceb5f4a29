package ingest

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Texts of many dialects that all mean the same table.
func TestDialects(t *testing.T) {
	want := []row{
		{0, 0, "a", at(8), bitsOf(1.5, -2), nil, []string{"day one"}},
		{0, 0, "a", at(9), []uint32{nan, math.Float32bits(1e5)}, nil, []string{"it's \"5\", so"}},
		{0, 0, "a", at(10), bitsOf(3, 4), nil, []string{""}},
	}
	for name, c := range map[string]struct {
		text  string
		o     TextOptions
		lines [3]int64
		says  string
	}{
		"plain": {"date,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{2, 3, 4}, ""},
		"semicolons": {"date;x;y;z\r\n2013-02-08;1.5;-2;day one\r\n2013-02-09;;1e5;\"it's \"\"5\"\", so\"\r\n2013-02-10;3;4;\r\n", TextOptions{}, [3]int64{2, 3, 4},
			"cells separated by semicolons"},
		"tabs": {"date\tx\ty\tz\n2013-02-08\t1.5\t-2\tday one\n2013-02-09\t\t1e5\t\"it's \"\"5\"\", so\"\n2013-02-10\t3\t4\t\n", TextOptions{}, [3]int64{2, 3, 4}, "cells separated by tabs"},
		"bars": {"date|x|y|z\n2013-02-08|1.5|-2|day one\n2013-02-09||1e5|\"it's \"\"5\"\", so\"\n2013-02-10|3|4|\n", TextOptions{}, [3]int64{2, 3, 4}, "cells separated by bars"},
		"named delimiter": {"date:x:y:z\n2013-02-08:1.5:-2:day one\n2013-02-09::1e5:\"it's \"\"5\"\", so\"\n2013-02-10:3:4:\n", TextOptions{Delimiter: ":"}, [3]int64{2, 3, 4},
			"cells separated by colons"},
		"Excel": {"sep=;\ndate;x;y;z\n2013-02-08;1.5;-2;day one\n2013-02-09;;1e5;\"it's \"\"5\"\", so\"\n2013-02-10;3;4;\n", TextOptions{}, [3]int64{3, 4, 5}, "cells separated by semicolons"},
		"titles": {"Prices of X,http://x\n\nA 5\" pipe\ndate,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{5, 6, 7},
			"2 lines before the header left out"},
		"five titles": {"1\n2\n3\n4\n5\ndate,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{7, 8, 9},
			"5 lines before the header left out"},
		"hash": {"# made by x\n# on, a, fine, day\ndate,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{4, 5, 6},
			"2 lines before the header left out"},
		"hash is the header": {"# made by x\n# date,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{3, 4, 5},
			"1 line before the header left out"},
		"comments": {"% made by \"x\ndate,x,y,z\n2013-02-08,1.5,-2,day one\n%,,,,,,,\"\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n%\n2013-02-10,3,4,", TextOptions{Comment: "%"}, [3]int64{3, 5, 7},
			`lines that begin with '%' left out`},
		"old Mac":     {"date,x,y,z\r2013-02-08,1.5,-2,day one\r2013-02-09,,1e5,\"it's \"\"5\"\", so\"\r2013-02-10,3,4,\r", TextOptions{}, [3]int64{2, 3, 4}, "lines end in CR"},
		"apostrophes": {"date,x,y,z\n2013-02-08,1.5,-2,'day one'\n2013-02-09,,'1e5','it''s \"5\", so'\n2013-02-10,3,4,''\n", TextOptions{Quote: "'"}, [3]int64{2, 3, 4}, `quoted with '\''`},
		"no quotes":   {"date;x;y;z\n2013-02-08;1.5;-2;day one\n2013-02-09;;1e5;it's \"5\", so\n2013-02-10;3;4;\n", TextOptions{Quote: "none"}, [3]int64{2, 3, 4}, "cells separated by semicolons, no quotes"},
		"escapes": {"date,x,y,z\n2013-02-08,1.5,-2,day\\ one\n2013-02-09,\\N,1e5,\"it's \\\"5\\\", so\"\n2013-02-10,3,4,\"\"\n", TextOptions{Escape: `\`}, [3]int64{2, 3, 4},
			`escaped with '\\'`},
		"escapes without quotes": {"date,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,\\N,1e5,it's \\\"5\\\"\\, so\n2013-02-10,3,4,\n", TextOptions{Escape: `\`, Quote: "none"}, [3]int64{2, 3, 4},
			`no quotes, escaped with '\\'`},
		"blanks": {"  date   x\ty z \n2013-02-08 1.5 -2  \"day one\"\n2013-02-09 \\N 1e5 \"it's \"\"5\"\", so\"\n\n2013-02-10 3 4 \"\"", TextOptions{Delimiter: "space"}, [3]int64{2, 3, 5},
			"cells separated by blanks"},
		"separator at the end of rows": {"date,x,y,z\n2013-02-08,1.5,-2,day one,\n2013-02-09,,1e5,\"it's \"\"5\"\", so\",\n2013-02-10,3,4,,\n", TextOptions{}, [3]int64{2, 3, 4},
			"rows end with a separator"},
		"separator at the end of the header": {"date,x,y,z,\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{2, 3, 4},
			"the header ends with a separator"},
		"row names": {"date,x,y,z\na,2013-02-08,1.5,-2,day one\nb,2013-02-09,,1e5,\"it's \"\"5\"\", so\"\nc,2013-02-10,3,4,\n", TextOptions{}, [3]int64{2, 3, 4},
			"the first column has no name"},
		"row numbers": {"date,x,y,z\n7,2013-02-08,1.5,-2,day one\n8,2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n9,2013-02-10,3,4,\n", TextOptions{}, [3]int64{2, 3, 4},
			"the first column has no name"},
		"no header":    {"2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{Names: []string{"date", "x", "y", "z"}}, [3]int64{1, 2, 3}, "no header: names given"},
		"other header": {"what,ever\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{Names: []string{"date", "x", "y", "z"}, SkipLines: 1}, [3]int64{2, 3, 4}, "no header: names given"},
		"skipped lines": {"1,2,3,4\n\"\ndate,x,y,z\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{SkipLines: 2}, [3]int64{4, 5, 6},
			""},
		"angles": {"<date>,<x>,<y>,<z>\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{2, 3, 4}, ""},
		"pandas": {"Price,x,y,z\nTicker,A B,A B,A B\ndate,,,\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{4, 5, 6},
			"a header of 3 rows"},
		"pandas by ticker": {"Ticker,A B,A B,A B\nPrice,x,y,z\ndate,,,\n2013-02-08,1.5,-2,day one\n2013-02-09,,1e5,\"it's \"\"5\"\", so\"\n2013-02-10,3,4,\n", TextOptions{}, [3]int64{4, 5, 6},
			"a header of 3 rows"},
	} {
		s, err := survey(t, Options{Text: c.o}, "a.csv", c.text)
		require.NoError(t, err, name)
		got, _, err := rows(t.Context(), s, Plan{Ticker: -1, Time: s.Index("date"), Floats: []int{s.Index("x"), s.Index("y")}, Texts: []int{s.Index("z")}})
		require.NoError(t, err, name)
		for i := range want {
			want[i].Line = c.lines[i]
			want[i].Ticker = "a"
			if strings.HasPrefix(name, "pandas") {
				want[i].Ticker = "A B"
			}
		}
		require.Equal(t, want, got, name)
		require.Equal(t, c.says, s.Dialect(0), name)
	}
}

func TestDialectsRefuse(t *testing.T) {
	const row = "2013-02-08,1,2\n"
	for text, c := range map[string]struct {
		o    TextOptions
		want string
	}{
		row + row:                                  {TextOptions{}, `a.csv: has no header: line 1 looks like a row of data: "2013-02-08", "1", "2"; name the columns with --names`},
		"http://x\n" + row + row:                   {TextOptions{}, "a.csv:2: has 3 cells, while the header has 1; skip lines before the header with --skip-lines"},
		"date,x,y\n1,2013-02-08,2,3\n":             {TextOptions{Names: []string{"a", "b"}}, "a.csv:1: has 3 cells, while the names given are 2; give a name for each cell"},
		row:                                        {TextOptions{Preset: "kraken"}, "a.csv:1: has 3 cells, while preset kraken has 7"},
		"date,x,y\n" + row + "a,b\n,\n":            {TextOptions{Delimiter: ";"}, `no column is named like a time`},
		"date,x,y\n2013-02-08,'1,2\n":              {TextOptions{Quote: "'"}, "a.csv:2: has a quoted cell that does not end"},
		"date,x,y\n2013-02-08,'1'1,2\n":            {TextOptions{Quote: "'"}, "a.csv:2: has a quoted cell that does not end"},
		"Price,x,x\nTicker,A,B\ndate,,\n":          {TextOptions{}, `its header of 3 rows names several tickers side by side, such as "A", "B"`},
		"when,x\n2013-02-08,1,2\n":                 {TextOptions{}, "a.csv:2: has 3 cells, while the header has 2"},
		"date,x\n5,2013-02-08,2\n9,2013-02-09,2\n": {TextOptions{}, "a.csv:2: has 3 cells, while the header has 2"},
		"Date,Open\n2013-02-08,1,2\n":              {TextOptions{}, "a.csv:2: has 3 cells, while the header has 2"},
		"date,x,y\n" + row + "date,x,y\n":          {TextOptions{}, `a.csv:3: column "date": "date" is the column's name: the header comes again; leave such rows out with --on-error skip`},
		"date,x,y\n" + row + "Data by X\n":         {TextOptions{}, `a.csv:3: "Data by X" has 1 cell, while the header has 3; correct the row, or skip`},
		"date,x,y\n" + row + "2013-02-09,":         {TextOptions{}, `a.csv:3: has 2 cells, while the header has 3`},
		"date,x\n2013-02-08,1,\n2013-02-09,1,x\n":  {TextOptions{}, "has 3 cells, while the header has 2"},
		"date,x\n" + strings.Repeat("2013-02-08,1,\n", 40) + "2013-02-09,1,x\n": {TextOptions{}, `a.csv:42: "x" stands behind the last column`},
	} {
		s, err := survey(t, Options{Text: c.o}, "a.csv", text)
		if err == nil {
			var i int
			if i, err = s.TimeColumn(); err == nil {
				_, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: i, Floats: []int{1}})
			}
		}
		require.ErrorContains(t, err, c.want, text)
	}
	for want, o := range map[string]TextOptions{
		"delimiter \"ab\"; must be one":      {Delimiter: "ab"},
		"delimiter \"é\"; must be one":       {Delimiter: "é"},
		"delimiter \"1\"; must be one":       {Delimiter: "1"},
		"quote \"q\"; must be one":           {Quote: "q"},
		"escape \".\"; must be one":          {Escape: "."},
		"comment \"//\"; must be one":        {Comment: "//"},
		"has two meanings":                   {Delimiter: "|", Quote: "|"},
		"-1 lines to skip":                   {SkipLines: -1},
		`the column name "a" is empty or`:    {Names: []string{"a", "b", "a"}},
		`preset "bianace" is unknown; there`: {Preset: "bianace"},
		`encoding "klingon" is unknown; use`: {Encoding: "klingon"},
	} {
		require.ErrorContains(t, o.Check(), want)
		_, err := NewSurvey(t.Context(), []Source{{Path: "a.csv"}}, Options{Text: o})
		require.Equal(t, o.Check(), err)
	}
}

// The delimiter is that by which most cells become numbers and dates.
func TestSniff(t *testing.T) {
	for text, want := range map[string]byte{
		"a,b\n1,2\n":              ',',
		"a;b\n1,5;2,5\n2,5;3,5\n": ';',
		"Date;Open, USD;Close, USD\n2013-02-08;1,5;2,5\n": ';',
		"a|b,c|d\n1|x,y|2\n":                              '|',
		"a,b,c\n1,x|y,2\n1,x|y,2\n":                       ',',
		"a\tb\n1,000\t2\n":                                '\t',
		"a,b;c\n":                                         ',',
		"a;b\n":                                           ';',
		"a\n1\n":                                          ',',
		"\n\na|b\n":                                       '|',
		"title, with comma\na;b;c\n1;2;3\n1;2;3\n": ';',
		"5\" pipe\na;b;c\n1;2;3\n1;2;3\n":          ';',
		"\"a;b\",c\n1,2\n":                         ',',
		"":                                         ',',
	} {
		require.Equal(t, string(want), string((&dialect{quote: '"'}).sniff([]byte(text))), text)
	}
}

func TestPresets(t *testing.T) {
	for _, p := range Presets {
		require.Less(t, p.optional, len(p.Names)-4, p.Name)
		_, err := findPreset(p.Name)
		require.NoError(t, err)
	}
	s, err := survey(t, Options{Text: TextOptions{Preset: "lean-daily"}}, "spy.csv", "19980102 00:00,136300,-162500,1,135000.5,6315000\n19980105 00:00,,1.5e3,1e-60,9999999999999999999999999999999999999999999,1\n")
	require.NoError(t, err)
	p := Plan{Ticker: -1, Time: s.Index("time"), Floats: []int{1, 2, 3, 4, 5}}
	_, _, err = rows(t.Context(), s, p)
	require.ErrorContains(t, err, "is larger than any float32")
	p.Floats = []int{1, 2, 3, 5}
	got, st, err := rows(t.Context(), s, p)
	require.NoError(t, err)
	require.Equal(t, []row{
		{0, 1, "spy", time.Date(1998, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano(), bitsOf(13.63, -16.25, 1e-4, 6315000), nil, nil},
		{0, 2, "spy", time.Date(1998, 1, 5, 0, 0, 0, 0, time.UTC).UnixNano(), []uint32{nan, math.Float32bits(0.15), 0, math.Float32bits(1)}, nil, nil},
	}, got)
	require.Equal(t, int64(1), st.Columns[0].Inexact, "of the number that is meant")
}

// Rewriting keeps every cell and every line, whatever the pieces that it reads.
func TestRewrite(t *testing.T) {
	cells := rapid.SampledFrom([]string{"", "a", "1.5", "it's", `"q"`, "a,b", "a\nb", `back\slash`, " ", "é", "#x", "a;b"})
	path := filepath.Join(t.TempDir(), "a.csv")
	rapid.Check(t, func(t *rapid.T) {
		o := TextOptions{
			Delimiter: rapid.SampledFrom([]string{";", "|", ","}).Draw(t, "delimiter"), Quote: rapid.SampledFrom([]string{"'", `"`}).Draw(t, "quote"),
			Escape: rapid.SampledFrom([]string{"", `\`}).Draw(t, "escape"), Comment: "#",
		}
		var text strings.Builder
		text.WriteString("time" + o.Delimiter + "x" + o.Delimiter + "y\n")
		var want []row
		line := int64(2)
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			if rapid.IntRange(0, 3).Draw(t, "comment") == 0 {
				text.WriteString("# " + o.Quote + o.Delimiter + "\r\n")
				line++
			}
			r := row{Line: line, Ticker: "a", Time: at(8), Texts: []string{cells.Draw(t, "x"), cells.Draw(t, "y")}}
			text.WriteString("2013-02-08")
			for _, c := range r.Texts {
				if o.Escape != "" {
					c = strings.ReplaceAll(c, `\`, `\\`)
				}
				switch line += int64(strings.Count(c, "\n")); {
				case o.Escape != "" && rapid.Bool().Draw(t, "escaped"):
					c = o.Quote + strings.ReplaceAll(c, o.Quote, `\`+o.Quote) + o.Quote
				default:
					c = o.Quote + strings.ReplaceAll(c, o.Quote, o.Quote+o.Quote) + o.Quote
				}
				text.WriteString(o.Delimiter + c)
			}
			text.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol"))
			line++
			want = append(want, r)
		}
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		s, err := NewSurvey(t.Context(), []Source{{Path: path}}, Options{Text: o})
		require.NoError(t, err)
		got, _, err := rows(t.Context(), s, Plan{Ticker: -1, Texts: []int{1, 2}})
		require.NoError(t, err)
		for i := range got {
			got[i].Cells, got[i].Stamps = nil, nil
		}
		require.Equal(t, want, got)

		d, err := o.resolve()
		require.NoError(t, err)
		whole, err := io.ReadAll(newRewriter(strings.NewReader(text.String()), &d, path))
		require.NoError(t, err)
		pieces, err := io.ReadAll(newRewriter(iotest.OneByteReader(strings.NewReader(text.String())), &d, path))
		require.NoError(t, err)
		require.Equal(t, string(whole), string(pieces))
		require.Equal(t, strings.Count(text.String(), "\n"), strings.Count(string(whole), "\n"))
	})
}

// Any bytes, read with any dialect, end in rows or an error.
func TestDialectAnything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	parts := []string{"time", "x", ",", ";", "\n", "\n", "\r", `"`, "'", "|", "\t", "2013-02-08", "1", "1,5", " ", "\xff", "#", "%", `\`, "sep=;", "Price", "Ticker", "<x>"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "text"), "")
		o := Options{SkipBad: rapid.Bool().Draw(t, "skip"), Text: TextOptions{
			Delimiter: rapid.SampledFrom([]string{"", "", ";", "space", "tab"}).Draw(t, "delimiter"), Quote: rapid.SampledFrom([]string{"", "'", "none"}).Draw(t, "quote"),
			Escape: rapid.SampledFrom([]string{"", `\`}).Draw(t, "escape"), Comment: rapid.SampledFrom([]string{"", "#"}).Draw(t, "comment"),
			SkipLines: rapid.IntRange(0, 3).Draw(t, "skipped"), Preset: rapid.SampledFrom([]string{"", "", "kraken"}).Draw(t, "preset"),
		}}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := NewSurvey(t.Context(), []Source{{Path: path}}, o)
		if err != nil {
			require.ErrorContains(t, err, "a.csv")
			return
		}
		s.chunk = rapid.IntRange(100, 300).Draw(t, "chunk")
		p := Plan{Ticker: -1, Time: len(s.Columns) - 1}
		for j := range s.Columns {
			p.Floats, p.Texts = append(p.Floats, j), append(p.Texts, j)
		}
		_, _, _ = rows(t.Context(), s, p)
	})
}

func ExampleSurvey_Dialect() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(path, []byte("Prices in euros\ndate;close\n2013-02-08;1.5\n"), 0o600); err != nil {
		panic(err)
	}
	s, err := NewSurvey(context.Background(), []Source{{Path: path}}, Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Dialect(0))
	// Output: cells separated by semicolons, 1 line before the header left out
}
