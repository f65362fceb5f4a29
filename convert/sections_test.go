package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
)

// A folder of cross-sections is the same as one long table.
func TestCrossSections(t *testing.T) {
	_, rows := panel(60, 12)
	named, dated := t.TempDir(), t.TempDir()
	byDate := map[string]string{}
	long := "date,ticker,a,b\n"
	for _, r := range rows {
		byDate[r[:10]] += r
		long += r
	}
	for date, text := range byDate {
		write(t, dated, date+".csv", "date,ticker,a,b\n"+text)
		write(t, named, "closes_"+strings.ReplaceAll(date, "-", "")+".csv", "ticker,a,b\n"+strings.ReplaceAll(text, date+",", ""))
	}
	want, s := convertText(t, long, convert.Options{MaxGap: 36 * time.Hour})
	requireSame(t, truth(t, strings.NewReader(long), "ticker", "date", time.DateOnly, "a", "b"), contents(t, s))
	got, _ := run(t, convert.Options{Inputs: []string{dated}, Ticker: "ticker", MaxGap: 36 * time.Hour})
	require.Equal(t, want.Digest, got.Digest)
	require.Equal(t, len(byDate), got.Files)
	require.Zero(t, got.UnsortedTickers)
	got, _ = run(t, convert.Options{Inputs: []string{named}, Ticker: "ticker", MaxGap: 36 * time.Hour, DateFromName: true})
	require.Equal(t, want.Digest, got.Digest)
	o := convert.Options{Inputs: []string{named}, Ticker: "ticker", MaxGap: 36 * time.Hour}
	require.ErrorContains(t, fails(t, "", o), "take the dates in the files' names with --date-from-name")
}

func TestDateFromName(t *testing.T) {
	dir := t.TempDir()
	for day := 1; day <= 3; day++ {
		write(t, dir, fmt.Sprintf("2024-01-0%d.csv", day), fmt.Sprintf("A,B\n%d,\n", day))
	}
	_, s := run(t, convert.Options{Inputs: []string{dir}, Wide: "close", DateFromName: true, Zone: "America/New_York"})
	require.Equal(t, []string{"A", "B"}, s.Tickers())
	require.Equal(t, "2024-01-01T05:00:00Z", contents(t, s)["A"].times[0].UTC().Format(time.RFC3339), "midnight there")

	in := write(t, dir, "2024-01-04.csv", "A,B\n1,2\n3,4\n")
	o := convert.Options{Inputs: []string{in}, Wide: "close", DateFromName: true}
	require.ErrorContains(t, fails(t, "", o), `2024-01-04.csv:3: "2024-01-04T00:00:00Z" comes twice for ticker "A"`)
	var unusable *ingest.UnusableError
	o.Inputs = []string{write(t, dir, "day/x.csv", "A,B\n1,2\n")}
	require.ErrorAs(t, fails(t, "", o), &unusable)
	require.ErrorContains(t, unusable, "x.csv: holds no date such as 20130208")
	for says, o := range map[string]convert.Options{
		"name its column with --ticker": {DateFromName: true},
		"neither in a column":           {DateFromName: true, Ticker: "A", Time: "B"},
	} {
		o.Inputs = []string{in}
		require.ErrorContains(t, fails(t, "", o), says)
	}
}
