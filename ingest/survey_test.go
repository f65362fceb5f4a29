package ingest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// survey surveys files given as name, text, name, text, ...
func survey(tb testing.TB, o Options, files ...string) (*Survey, error) {
	tb.Helper()
	m := map[string]string{}
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = files[i+1]
	}
	srcs, _, err := Sources([]string{folder(tb, m)})
	require.NoError(tb, err)
	return NewSurvey(tb.Context(), srcs, o)
}

func TestSurveyKinds(t *testing.T) {
	s, err := survey(t, Options{}, "a.csv", "date, open ,name,flag,late,stamp,,code,mixed\n"+
		"2013-02-08,1,NA,TRUE,,1360281600,0,000001,1\n2013-02-09,NaN,NA,FALSE,nan,1360368000,1,000001,2\n2013-02-10,-Inf,NA,,,1360454400,2,000001,1.234,5\n2013-02-10,1e5,NA,,,1360454400,2,000001,4 787\n")
	require.NoError(t, err)
	want := []Column{
		{Name: "date", Kind: Time}, {Name: "open", Kind: Float}, {Name: "name", Kind: Empty, Constant: true, Same: true}, {Name: "flag", Kind: Text, Example: "TRUE"},
		{Name: "late", Kind: Empty}, {Name: "stamp", Kind: Float}, {Name: "column 7", Kind: Float, Unnamed: true}, {Name: "code", Kind: Float, Constant: true, Same: true},
		{Name: "mixed", Kind: Float}, // so that reading stops at "4 787"
	}
	require.Equal(t, want, s.Columns)
	require.Equal(t, 1, s.Index("open"))
	require.Equal(t, -1, s.Index("Open"))
	require.Equal(t, "text", Text.String())
}

func TestSurveySeveralSources(t *testing.T) {
	s, err := survey(t, Options{},
		"a.csv", "", "b.csv", "date,x,Name\n", "c.csv", "\xef\xbb\xbfdate,x,Name\r\n2013-02-08,,C\r\n2013-02-09,,C\r\n", "d.csv", "Name;date;x\nD;2013-02-08;1.5\n",
		"e.csv", "\n\n", "f.csv", "\xef\xbb\xbf")
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 4, 5}, s.Blank)
	require.Equal(t, []Column{{Name: "date", Kind: Time}, {Name: "x", Kind: Float}, {Name: "Name", Kind: Text, Constant: true, Example: "C"}}, s.Columns)

	_, err = survey(t, Options{}, "a.csv", "date,x,y\n2013-02-08,1,2\n", "b.csv", "y,date,z,w\n1,2013-02-08,1,1\n")
	require.ErrorContains(t, err, "b.csv: has other columns than")
	require.ErrorContains(t, err, `a.csv: it lacks "x" and has "z", "w" in excess`)

	s, err = survey(t, Options{}, "a.csv", "date,venue,Tick\n2013-02-08,X,A\n", "b.csv", "date,venue,Tick\n2013-02-08,X,B\n")
	require.NoError(t, err)
	require.Equal(t, Column{Name: "venue", Kind: Text, Constant: true, Same: true, Example: "X"}, s.Columns[1])
	require.Equal(t, Column{Name: "Tick", Kind: Text, Constant: true, Example: "A"}, s.Columns[2])

	// The first of several errors, whatever the number of goroutines.
	var files []string
	for i := range 40 {
		text := "date,x\n2013-02-08,1\n"
		if i >= 7 {
			text = "date,date\n2013-02-08,1\n"
		}
		files = append(files, fmt.Sprintf("%02d.csv", i), text)
	}
	for _, jobs := range []int{1, 3, 8} {
		_, err := survey(t, Options{Jobs: jobs}, files...)
		require.ErrorContains(t, err, "07.csv")
	}
}

func TestSurveyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "a.csv: holds no row",
		"date,x\n":                               "holds no row",
		"date,x,x\n1,2,3\n":                      `columns 2 and 3 are both named "x"`,
		"date,x\xe9\n1,2\n":                      "not UTF-8",
		"1605571200,16713.08\n1605574800,1\n":    "looks like a row of data",
		"AAPL,2013-02-08,1\nAAPL,2013-02-09,2\n": "looks like a row of data",
		"date,x\n2013-02-08,1,2,3\n":             "a.csv:2: has 4 cells, while the header has 2; skip lines before the header with --skip-lines, or give it a name for each cell",
		"PAR1...":                                "Parquet",
		"\x28\xb5\x2f\xfd...":                    "zstd stream",
		"BZh9...":                                "compressed",
		"date,x\n2013-02-08,\x00\n":              "looks like a binary file",
		"date,x\n2013-02-08,\"1\n":               "a.csv:2: has a quoted cell",
		"date,x\n2013-02-08,5\"\n":               "a.csv:2: has a quote inside",
		"\x1f\x8bnonsense":                       "gzip stream",
		strings.Repeat("x", chunkSize+1):         "a.csv:1: no row ends within",
	} {
		_, err := survey(t, Options{}, "a.csv", text)
		require.ErrorContains(t, err, want, clip(text))
		require.ErrorContains(t, err, "a.csv", clip(text))
	}
	_, err := survey(t, Options{}, "a.csv", "", "b.csv", "date,x\n")
	require.ErrorContains(t, err, "the inputs hold no row")
	_, err = survey(t, Options{TimeFormat: "%Q"}, "a.csv", "date,x\n2013-02-08,1\n")
	require.ErrorContains(t, err, "%Q is not supported")
	require.Equal(t, CheckTimeFormat("%Q"), err)
	_, err = NewSurvey(t.Context(), []Source{{Path: filepath.Join(t.TempDir(), "none.csv")}}, Options{})
	require.ErrorContains(t, err, "none.csv")
}

// Headers and rows longer than the first piece that is read.
func TestSurveyWide(t *testing.T) {
	const n = 20_000
	var head, row strings.Builder
	head.WriteString("date")
	row.WriteString("2013-02-08")
	for i := range n {
		fmt.Fprintf(&head, ",column_number_%d", i)
		fmt.Fprintf(&row, ",%d", i)
	}
	s, err := survey(t, Options{}, "a.csv", head.String()+"\n"+row.String()+"\n")
	require.NoError(t, err)
	require.Len(t, s.Columns, n+1)
	require.Equal(t, Column{Name: "column_number_19999", Kind: Float, Constant: true, Same: true}, s.Columns[n])
	require.Empty(t, s.Blank)
}

func TestTimeColumn(t *testing.T) {
	for header, want := range map[string]string{
		"x,Date\n1,2013-02-08": "Date", "TimeStamp,x\n1360281600,1": "TimeStamp", "x,when\n1,2013-02-08": "when",
		"time,date,x\n09:30,2013-02-08,1\n16:00,2013-02-08,2": "date", "Date,Time\n20130208,93000\n20130208,0": "Date",
	} {
		s, err := survey(t, Options{}, "a.csv", header+"\n")
		require.NoError(t, err)
		i, err := s.TimeColumn()
		require.NoError(t, err)
		require.Equal(t, want, s.Columns[i].Name)
	}
	for header, want := range map[string]string{
		"x,y\n1,2":                         `the columns are "x", "y"; name the time column with --time; if there is none, add one`,
		"s,t\nA,2020-01-02\nB,2020-01-03Z": `column "t" begins like one, with "2020-01-02"; --time "t" says what is wrong with the rest`,
		"date,time,x\n2013-02-08,noon,1":   `"date", "time"`, "date,time,x\n2013-02-08 09:30,09:30,1": `"date", "time"`, "date,time,x\n2013-02-08,2013-02-08,1": `"date", "time"`, "a,b,x\n2013-02-08,2013-02-08,1": `"a", "b"`,
	} {
		s, err := survey(t, Options{}, "a.csv", header+"\n")
		require.NoError(t, err)
		_, err = s.TimeColumn()
		require.ErrorContains(t, err, want)
	}
}
