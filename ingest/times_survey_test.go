package ingest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timesOf reads the times of one file's columns date and clock; clock may be "".
func timesOf(t *testing.T, o Options, name, text, date, clock string) (times []string, st *Stats, err error) {
	t.Helper()
	s, err := survey(t, o, name, text)
	require.NoError(t, err)
	p := Plan{Ticker: -1, Time: s.Index(date)}
	if clock != "" {
		p.Clock = []int{s.Index(clock)}
	}
	got, st, err := rows(t.Context(), s, p)
	for _, r := range got {
		times = append(times, time.Unix(0, r.Time).UTC().Format("2006-01-02T15:04:05.999"))
	}
	return times, st, err
}

func TestReadDateAndTimeOfDay(t *testing.T) {
	for _, c := range []struct {
		format, text string
		want         []string
		took         string
	}{
		{"", "d,t,x\n2013-02-08,09:30,1\n2013-02-08,16:00:00.5,1\n", []string{"2013-02-08T09:30:00", "2013-02-08T16:00:00.5"}, "%Y-%m-%d %H:%M"},
		{"", "t,x,d\n93000,1,2013.02.08\n0,1,2013.02.09\n", []string{"2013-02-08T09:30:00", "2013-02-09T00:00:00"}, "%Y.%m.%d %H%M%S"},
		{"", "d;t;x\n\"8/2/2013\";\"4:00 PM\";1\n28/2/2013;9:30 AM;1\n", []string{"2013-02-08T16:00:00", "2013-02-28T09:30:00"}, "%d/%m/%Y %I:%M %p"},
		{"ms-of-day", "d,t\n20130208,34200000\n20130209,0\n", []string{"2013-02-08T09:30:00", "2013-02-09T00:00:00"}, "%Y%m%d ms-of-day"},
		{"%H.%M", "d,t\n8/2/2013,9.30\n28/2/2013,16.00\n", []string{"2013-02-08T09:30:00", "2013-02-28T16:00:00"}, "%d/%m/%Y %H.%M"},
		{"%m/%d/%Y %H", "d,t\n2/8/2013,9\n2/28/2013,16\n", []string{"2013-02-08T09:00:00", "2013-02-28T16:00:00"}, "%m/%d/%Y %H"},
		{"%m/%d/%y s-of-day", "d,t\n2/8/13,34200\n", []string{"2013-02-08T09:30:00"}, "%m/%d/%y s-of-day"},
	} {
		got, st, err := timesOf(t, Options{TimeFormat: c.format}, "a.csv", c.text, "d", "t")
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
		require.Equal(t, c.took, st.TimeFormat)
	}
	for _, c := range []struct{ format, text, want string }{
		{"", "d,t\n2013-02-08,09:30\n2013-02-09,x\n", `a.csv:3: column "t": "2013-02-09 x" is not a time like "2013-02-08 09:30"`},
		{"", "t,d\n09:30,2013-02-08\n09:30,\n", `a.csv:3: column "d": " 09:30" the time is empty`},
		{"", "d,t\n3/4/2013,09:30\n5/6/2013,16:00\n", `a.csv:2: column "d": "3/4/2013 09:30" leaves open whether day or month comes first`},
		{"", "d,t\n2013-02-08,9\n2013-02-08,10\n", `a.csv:2: column "t": "9" is not a time of day in a format that is recognised; give its layout with --time-format, such as %H,`},
		{"", "d,t\n2013-02-08 09:30,09:30\n", `column "d": "2013-02-08 09:30" has a time of day itself; leave --time-of-day out`},
		{"ms-of-day", "d,t\n2013-02-08 09:30,34200000\n", `has a time of day itself`},
		{"", "d,t\n2013Q1,09:30\n", `column "d": "2013Q1" is a quarter`},
		{"ms-of-day", "d,t\n2013-02-08,86400000\n", `"2013-02-08 86400000" is not a time of day in milliseconds since midnight`},
		{"", "d,t\n,\n,\n", `column "d" begins without any time`},
	} {
		_, _, err := timesOf(t, Options{TimeFormat: c.format}, "a.csv", c.text, "d", "t")
		require.ErrorContains(t, err, c.want, c.text)
	}
	// A row of which one part was bad leaves nothing behind for the next.
	got, st, err := timesOf(t, Options{SkipBad: true}, "a.csv", "d,t\n2013-02-08,09:30\nx,09:30\n2013-02-09\n2013-02-10,16:00\n", "d", "t")
	require.NoError(t, err)
	require.Equal(t, []string{"2013-02-08T09:30:00", "2013-02-10T16:00:00"}, got)
	require.Equal(t, int64(2), st.Skipped)

	s, err := survey(t, Options{}, "a.csv", "d,t\n2013-02-08,09:30\n")
	require.NoError(t, err)
	for _, clock := range [][]int{{0}, {0, 1}, {2}, {-1}} {
		_, err = s.Read(t.Context(), Plan{Ticker: -1, Time: 0, Clock: clock}, nil)
		require.ErrorContains(t, err, "plan")
	}
}

func TestReadTimeOfDayOfTheFilesDate(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("no time zone data on this machine")
	}
	got, st, err := timesOf(t, Options{TimeFormat: "ms-of-day", Location: newYork}, "20140605_aapl_minute_trade.csv", "ms,x\n34200000,6448000\n57600000,1\n", "ms", "")
	require.NoError(t, err)
	require.Equal(t, []string{"2014-06-05T13:30:00", "2014-06-05T20:00:00"}, got)
	require.Equal(t, "ms-of-day", st.TimeFormat)
	got, _, err = timesOf(t, Options{TimeFormat: "%H:%M"}, "bars-2014-06-05.csv", "t,x\n9:30,1\n", "t", "")
	require.NoError(t, err)
	require.Equal(t, []string{"2014-06-05T09:30:00"}, got)
	_, _, err = timesOf(t, Options{TimeFormat: "%H:%M"}, "bars.csv", "t,x\n9:30,1\n", "t", "")
	require.ErrorContains(t, err, "bars.csv: the times are times of day, and the file holds no date")
	_, _, err = timesOf(t, Options{TimeFormat: "%H:%M"}, "20140605-20140606.csv", "t,x\n9:30,1\n", "t", "")
	require.ErrorContains(t, err, "holds two dates in its name, 2014-06-05 and 2014-06-06")
}

func TestTimeOfDayIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"date,time,x\n2013-02-08,09:30,1\n": "time", "Date,Time\n2013.02.08,00:00\n2013.02.08,00:15\n": "Time", "time,date\n0930,20130208\n": "time",
		"date,time\n2013-02-08,2013-02-08 09:30\n": "", "date,time\n2013-02-08,1360281600\n": "", "date,time,timestamp\n2013-02-08,09:30,09:30\n": "", "date,t\n2013-02-08,09:30\n": "",
		"date,time\n2013-02-08 10:00,09:30\n": "", "date,time\n2013-02-08,9\n": "", "date,time\n2013-02-08,09:30\n2013-02-09,late\n": "",
	} {
		s, err := survey(t, Options{}, "a.csv", text)
		require.NoError(t, err)
		date := max(s.Index("date"), s.Index("Date"))
		got := ""
		if i := s.TimeOfDay(date); i >= 0 {
			got = s.Columns[i].Name
		}
		require.Equal(t, want, got, text)
	}
}

func TestReadAmbiguousTimes(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("no time zone data on this machine")
	}
	var b strings.Builder
	b.WriteString("t,x\n")
	for minute := range 24 * 60 {
		fmt.Fprintf(&b, "2024-11-03 %02d:%02d,%d\n", minute/60, minute%60, minute)
	}
	_, _, err = timesOf(t, Options{Location: newYork}, "a.csv", b.String(), "t", "")
	require.ErrorContains(t, err, `a.csv:62: column "t": "2024-11-03 01:00" happened twice in America/New_York: the clocks went back over it; choose with --on-ambiguous-time`)
	for choice, offset := range map[string]int{"first": 4, "last": 5} {
		got, st, err := timesOf(t, Options{Location: newYork, AmbiguousTime: choice, Jobs: 2}, "a.csv", b.String(), "t", "")
		require.NoError(t, err)
		require.Len(t, got, 24*60)
		require.Equal(t, int64(60), st.AmbiguousTimes)
		require.Equal(t, fmt.Sprintf("2024-11-03T%02d:00:00", 1+offset), got[60])
		require.Equal(t, "2024-11-03T04:59:00", got[59])
		require.Equal(t, "2024-11-03T07:00:00", got[120])
	}
	// Rows that are left out for another reason don't count.
	s, err := survey(t, Options{Location: newYork, AmbiguousTime: "last", SkipBad: true}, "a.csv", "t,x\n2024-11-03 01:30,1\n2024-11-03 01:31,?\n2024-03-10 02:30,1\n")
	require.NoError(t, err)
	_, st, err := rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{1}})
	require.NoError(t, err)
	require.Equal(t, int64(1), st.AmbiguousTimes)
	require.Equal(t, int64(2), st.Skipped)
	require.Contains(t, st.FirstSkipped, "a.csv:3: ")
}

// Offsets that change within a column are instants like any other.
func TestReadOffsets(t *testing.T) {
	got, st, err := timesOf(t, Options{}, "a.csv", "t\n2013-03-08 00:00:00-05:00\n2013-03-11 00:00:00-04:00\n2013-03-12 00:00:00Z\n", "t", "")
	require.NoError(t, err)
	require.Equal(t, []string{"2013-03-08T05:00:00", "2013-03-11T04:00:00", "2013-03-12T00:00:00"}, got)
	require.Equal(t, "%Y-%m-%d %H:%M:%S%z", st.TimeFormat)
}

func TestReadSaysWhyNoTime(t *testing.T) {
	for cell, want := range map[string]string{"2013Q1": "is a quarter", "2013": "is a year or a number", "43774": "--time-format excel", "09:30": "--time-of-day", "x": "--time-format"} {
		_, _, err := timesOf(t, Options{}, "a.csv", "t,x\n"+cell+",1\n", "t", "")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "a.csv:2: ")
	}
	_, _, err := timesOf(t, Options{}, "a.csv", "t\n1360281600\n1360281600000\n1360281601\n", "t", "")
	require.ErrorContains(t, err, `a.csv:2: column "t": "1360281600" looks like seconds since 1970, while the column is in milliseconds`)
	got, st, err := timesOf(t, Options{}, "a.csv", "t\n1381795200.0\n1381795200.25\n0\n", "t", "")
	require.NoError(t, err)
	require.Equal(t, []string{"2013-10-15T00:00:00", "2013-10-15T00:00:00.25", "1970-01-01T00:00:00"}, got)
	require.Equal(t, "epoch-s", st.TimeFormat)
	got, _, err = timesOf(t, Options{TimeFormat: "excel"}, "a.csv", "t\n43774.39583\n43774\n", "t", "")
	require.NoError(t, err)
	require.Equal(t, []string{"2019-11-05T09:29:59.712", "2019-11-05T00:00:00"}, got)
}

func TestReadNumbersAsPeopleWriteThem(t *testing.T) {
	s, err := survey(t, Options{}, "a.csv", "t;a;b;c;d;e;f\n"+
		"2013-02-08;1.234,5;12,5;$1,2M;3,3%;1 234;1.234\n"+
		"2013-02-09;-2,25;;(7);0;5;2.345\n"+
		"2013-02-10;1.000.000;\u22121e3;$0.5;-0,1 %;1 000 000;12.000\n")
	require.NoError(t, err)
	for _, c := range s.Columns[1:] {
		require.Equal(t, Float, c.Kind, c.Name)
	}
	p := Plan{Ticker: -1, Time: 0, Floats: []int{1, 2, 4, 5, 6}}
	got, st, err := rows(t.Context(), s, p)
	require.NoError(t, err)
	require.Equal(t, bitsOf(1234.5, 12.5, 0.033, 1234, 1234), got[0].Cells)
	require.Equal(t, append(bitsOf(-2.25), append([]uint32{nan}, bitsOf(0, 5, 2345)...)...), got[1].Cells)
	require.Equal(t, bitsOf(1e6, -1000, -0.001, 1e6, 12000), got[2].Cells)
	var styles []string
	for _, c := range st.Columns {
		styles = append(styles, c.Style)
	}
	require.Equal(t, []string{"decimal comma, points between thousands", "decimal comma", "decimal comma, percent, divided by 100", "blanks between thousands", "decimal comma, points between thousands"}, styles)
	require.Equal(t, int64(2), st.Columns[2].Inexact)

	// Column c is written in both ways: the first cells win.
	p.Floats = []int{3}
	_, _, err = rows(t.Context(), s, p)
	require.ErrorContains(t, err, `a.csv:4: column "c": "$0.5" is not written like the numbers of this column (decimal comma, in $); say how numbers are written with --decimal and --thousands`)

	// What is open is an error only if it is used, and a flag decides.
	const open = "t,a,b\n2013-02-08,\"1,234\",7\n2013-02-09,\"2,345\",8\n"
	s, err = survey(t, Options{}, "a.csv", open)
	require.NoError(t, err)
	_, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{2}})
	require.NoError(t, err)
	_, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{2, 1}})
	require.ErrorContains(t, err, `a.csv:2: column "a": "1,234" leaves open whether its comma is a decimal comma`)
	require.ErrorContains(t, err, "--decimal point or --decimal comma")
	for _, c := range []struct {
		o    Options
		want float32
	}{{Options{Decimal: "point"}, 1234}, {Options{Decimal: "comma"}, 1.234}, {Options{Thousands: "comma"}, 1234}, {Options{Thousands: "none"}, 1.234}} {
		s, err = survey(t, c.o, "a.csv", open)
		require.NoError(t, err)
		got, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{1}})
		require.NoError(t, err)
		require.Equal(t, bitsOf(c.want), got[0].Cells)
	}
	_, err = survey(t, Options{Decimal: "dot"}, "a.csv", open)
	require.ErrorContains(t, err, "must be point or comma")

	// Whole numbers with a letter are numbers only among others.
	s, err = survey(t, Options{}, "a.csv", "t,bar,volume,tenor\n2013-02-08,5M,12K,1M\n2013-02-09,5M,1.5M,1Y\n2013-02-10,5M,950,3Y\n")
	require.NoError(t, err)
	require.Equal(t, []Kind{Time, Text, Float, Text}, []Kind{s.Columns[0].Kind, s.Columns[1].Kind, s.Columns[2].Kind, s.Columns[3].Kind})
	require.Equal(t, "5M", s.Columns[1].Example)
	got, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{2, 1}})
	require.NoError(t, err)
	require.Equal(t, bitsOf(12000, 5e6), got[0].Cells, "unless one asks for them")
	require.Equal(t, math.Float32bits(1.5e6), got[1].Cells[0])
}
