package ingest

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// reader detects the format of cells, the first of which is then parsed.
func reader(tb require.TestingT, loc *time.Location, cells ...string) clockReader {
	f, at := detect(sampled(cells...))
	require.GreaterOrEqual(tb, at, 0, cells)
	return clockReader{timeFormat: f, zone: zone{loc: loc}}
}

func sampled(texts ...string) (cells []cell) {
	for _, s := range texts {
		cells = append(cells, cell{text: s})
	}
	return cells
}

func TestTimeFormats(t *testing.T) {
	day := time.Date(2013, 2, 28, 0, 0, 0, 0, time.UTC)
	half := day.Add(9*time.Hour + 30*time.Minute)
	nano := half.Add(time.Second + 123456789)
	for text, want := range map[string]time.Time{
		"2013-02-28": day, "2013/02/28": day, "2013.2.28": day, "20130228": day, " 2013-02-28 ": day,
		"28/02/2013": day, "28.2.2013": day, "28-02-2013": day, "02/28/2013": day, "2/28/2013": day,
		"28 Feb 2013": day, "Feb 28 2013": day, "Feb 28, 2013": day, "28-Feb-2013": day, "February 28, 2013": day,
		"2013-02-28T09:30": half, "2013-02-28 09:30:00": half, "2013-02-28  9:30": half, "2013-02-28T09:30:01.123456789": nano, "2013-02-28 09:30:00,000": half,
		"2013-02-28T09:30Z": half, "2013-02-28 09:30:00 UTC": half, "2013-02-28 09:30:00+00:00": half, "2013-02-28T04:30:00-05:00": half, "2013-02-28T04:30:00-0500": half,
		"2013-02-28T15:00:00+05:30": half, "2013-02-28T04:30:01.123456789-05": nano,
		"20130228 093000": half, "20130228 09:30": half, "20130228T0930": half, "20130228093000": half, "201302280930": half,
		"2/28/2013 9:30 AM": half, "28/2/2013 9:30": half, "2013-02-28 09:30 am": half, "2013-02-28 09:30PM": half.Add(12 * time.Hour), "2013-02-28 12:30 AM": day.Add(30 * time.Minute),
		"1362043800": half, "1362043800.0": half, "1362043800000": half, "1362043800000000": half, "1362043801123456789": nano, "1362043801.123456789": nano,
		"-86400000": time.Unix(-86400000, 0), "-86400000.5": time.Unix(-86400000, -5e8),
		"20130228T093000Z": half, "20130228T0930Z": half, "20130228T043000-0500": half, "20130228 093001.123456789": nano, "20130228093001.123456789": nano, "20130228-09:30:00": half,
		"20130228093000000": half, "2013-02-28T09:30:00+0000": half, "2013-02-28T10:30:00 +0100": half,
		"2013-02-28 09-AM": half.Add(-30 * time.Minute), "2013-02-28 9 PM": half.Add(12*time.Hour - 30*time.Minute), "2/28/2013, 9:30:00 AM": half,
		"28-Feb-13": day, "28-FEB-2013": day, "28FEB2013": day, "2013-Feb-28": day, "28/feb/2013 09:30": half, "28 Feb 99": time.Date(1999, 2, 28, 0, 0, 0, 0, time.UTC),
		"28 Feb 2013 9:30": half, "February 28, 2013 9:30 AM": half, "Feb. 28, 2013, 09:30": half, "Sept 3, 2013": time.Date(2013, 9, 3, 0, 0, 0, 0, time.UTC), "Feb  28 2013": day,
		"Thu, 28 Feb 2013": day, "Thursday, February 28, 2013": day, "Thu 2013-02-28 09:30": half, "Thu, 28 Feb 2013 09:30:00 GMT": half, "thu 2/28/2013": day,
		"2013-02": time.Date(2013, 2, 1, 0, 0, 0, 0, time.UTC), "2013/12": time.Date(2013, 12, 1, 0, 0, 0, 0, time.UTC),
	} {
		c := reader(t, nil, text)
		ns, reason := c.parse([]byte(text))
		require.Empty(t, reason, text)
		require.Equal(t, want.UnixNano(), ns, text)
	}
	for _, text := range []string{"", "x", "11:34", "2013", "1", "0", "99999", "2013-02-29", "2013-13-01", "31/31/2013", "2/8/13", "2013-02-28 24:00", "2013-02-28 09:60", "2013-02-28 09:30:60",
		"2013-02-28 9", "2013-02-28x", "2013-02/28", "20130229", "2013-02-28 09:30 EST", "2013-02-28 13:30 PM", "1.5e9", "AAPL", "4,787,699", "+1362043800", "99999", "43774.39583", "2456332",
		"2013Q1", "2013-13", "2013.02", "2013-02 09:30", "Fri, 28 Feb 2013", "Fri 28", "Fri", "28 Foo 2013", "Febr 28, 2013", "29-Feb-13", "28-Feb-013", "2013-02-28 09-XM", "2013-02-28 930", "2013022809300000", "201302280930.5"} {
		f, at := detect(sampled(text))
		if at == 0 && f.family == epoch {
			require.Contains(t, []string{"20130229", "2013022809300000", "201302280930.5"}, text) // numbers are counts
			continue
		}
		require.Equal(t, -1, at, "%s: %+v", text, f)
	}
}

func TestTimesAgreeWithPackageTime(t *testing.T) {
	layouts := []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006/01/02 15:04:05.999999999", "20060102 150405", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05.000-0700", "02.01.2006 15:04"}
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(0, rapid.Int64Range(math.MinInt64+3*86400e9, math.MaxInt64-3*86400e9).Draw(t, "ns")).In(time.FixedZone("", 60*rapid.IntRange(-720, 840).Draw(t, "offset")))
		layout := rapid.SampledFrom(layouts).Draw(t, "layout")
		text := at.Format(layout)
		want, err := time.Parse(layout, text)
		require.NoError(t, err)
		f, first := detect(sampled(text))
		require.Zero(t, first, text)
		if f.family == eitherFirst {
			f.family = dayFirst
		}
		if f.family == monthFirst {
			return
		}
		c := clockReader{timeFormat: f}
		ns, reason := c.parse([]byte(text))
		require.Empty(t, reason, text)
		require.Equal(t, want.UnixNano(), ns, text)
	})
	rapid.Check(t, func(t *rapid.T) { // no text panics
		text := rapid.SliceOfN(rapid.SampledFrom([]byte("0123456789-/.: TZ+AMPMJanFeb")), 0, 30).Draw(t, "text")
		f := shapeOf(text)
		for fam := yearFirst; fam <= excel; fam++ {
			c := clockReader{timeFormat: f}
			c.family = fam
			if c.unit == 0 {
				c.unit = 1
			}
			if c.width == 0 {
				c.width = 8
			}
			c.parse(text)
		}
	})
}

func TestTimeRange(t *testing.T) {
	first, last := time.Unix(0, math.MinInt64+1).UTC(), time.Unix(0, math.MaxInt64).UTC()
	for _, at := range []time.Time{first, last, first.Add(time.Second), last.Add(-time.Second)} {
		text := at.Format("2006-01-02T15:04:05.999999999")
		c := reader(t, nil, text)
		ns, reason := c.parse([]byte(text))
		require.Empty(t, reason, text)
		require.Equal(t, at.UnixNano(), ns)
	}
	c := reader(t, nil, "2013-02-08T00:00:00")
	for _, text := range []string{"1677-09-21T00:12:43.145224192", "1677-09-21T00:12:42", "2262-04-11T23:47:16.854775808", "2262-04-11T23:47:17", "1600-01-01T00:00:00", "9999-12-31T00:00:00", "0000-01-01T00:00:00"} {
		_, reason := c.parse([]byte(text))
		require.Equal(t, outOfRange, reason, text)
	}
	f, err := parseFormat("epoch-s")
	require.NoError(t, err)
	e := clockReader{timeFormat: f}
	for text, want := range map[string]string{"9223372036": "", "9223372037": outOfRange, "-9223372036": "", "-9223372037": outOfRange, "0": "", "-0.5": "", "1.0000000001": "is not a whole number of nanoseconds", "9223372036.9": outOfRange} {
		_, reason := e.parse([]byte(text))
		require.Equal(t, want, reason, text)
	}
	ns, _ := e.parse([]byte("-0.5"))
	require.Equal(t, int64(-5e8), ns)
}

func TestTimeMismatch(t *testing.T) {
	for _, c := range []struct{ first, cell, want string }{
		{"2013-02-08", "2013-02-08 09:30", "has a time of day"},
		{"2013-02-08 09:30", "2013-02-08", "has no time of day"},
		{"2013-02-08 09:30", "2013-02-08 09:30Z", "has a UTC offset"},
		{"2013-02-08 09:30Z", "2013-02-08 09:30", "has no UTC offset"},
		{"28/02/2013", "02/28/2013", "has its month first"},
		{"02/28/2013", "28/02/2013", "has its day first"},
		{"2013-02-08", "08/02/2013", "is not a time like"},
		{"2013-02-08", "2013-02-30", "is not a time like"},
		{"2013-02-08", "1360281600", "is not a time like"},
		{"20130208", "20130299", "is not a time like"},
		{"1360281600", "1360281600000", "looks like milliseconds since 1970, while the column is in seconds"},
		{"1360281600000", "1360281600", `looks like seconds since 1970, while the column is in milliseconds ("1360281600000")`},
		{"2013-02-08 09:30", "1500-02-08", "has no time of day"},
		{"2013-02-08", "", "is empty"},
		{"2013-02-08 09:30:00", "2013-02-08 09:30:00.1234567891", "fraction"},
		{"Fri, 8 Feb 2013", "Sat, 8 Feb 2013", "does not fall on that day of the week"},
		{"8-Feb-13", "2013-02-08", "is not a time like"},
		{"2013-02", "2013-02-08", "is not a time like"},
		{"2013-02-08", "11:34", `is a time of day without a date, while the column has times like "2013-02-08"`},
		{"2013-02-08", "2013Q1", "is a quarter"},
	} {
		r := reader(t, nil, c.first)
		_, reason := r.parse([]byte(c.cell))
		require.Contains(t, reason, c.want, "%s after %s", c.cell, c.first)
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		cells []string
		want  family
		at    int
	}{
		{[]string{"03/04/2019", "05/04/2019"}, eitherFirst, 0},
		{[]string{"03/04/2019", "13/04/2019"}, dayFirst, 0},
		{[]string{"03/04/2019", "04/13/2019", "13/04/2019"}, monthFirst, 0}, // the last is an error of its row
		{[]string{"20130299", "20130208"}, packedDate, 1},
		{[]string{"11:34", "2018/10/15"}, yearFirst, 1},
		{[]string{"0001-01-01 00:00", "2018-10-15 00:00"}, yearFirst, 0},
		{[]string{"13/4/1500"}, dayFirst, 0},
	} {
		f, at := detect(sampled(c.cells...))
		require.Equal(t, c.at, at, c.cells)
		require.Equal(t, c.want, f.family, c.cells)
	}
	f, _ := detect(sampled("1000000", "1360281600000"))
	require.Equal(t, int64(time.Millisecond), f.unit) // told from the largest
	require.Equal(t, "1360281600000", f.example)
}

func TestLocalTimes(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Europe/London", "Australia/Lord_Howe", "Asia/Tokyo", "Asia/Kolkata", "UTC", "Pacific/Apia"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Skip("no time zone data on this machine")
		}
		c := reader(t, loc, "2013-02-08 09:30:00")
		rapid.Check(t, func(t *rapid.T) {
			// Around the changes of the clocks as well as far from them.
			year := rapid.IntRange(1975, 2200).Draw(t, "year") // offsets are whole minutes
			wall := time.Date(year, time.Month(rapid.IntRange(1, 12).Draw(t, "month")), rapid.IntRange(1, 31).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC)
			if at := wall.In(loc); rapid.Bool().Draw(t, "near") {
				if _, end := at.ZoneBounds(); !end.IsZero() {
					_, off := at.Zone()
					wall = end.UTC().Add(time.Duration(off)*time.Second + time.Duration(rapid.IntRange(-200, 200).Draw(t, "minutes"))*time.Minute)
				}
			}
			const layout = "2006-01-02 15:04:05"
			text := wall.Format(layout)
			var shown []int64 // instants that show this text, by search
			for off := -26 * 60; off <= 26*60; off++ {
				if u := wall.Add(-time.Duration(off) * time.Minute); u.In(loc).Format(layout) == text {
					shown = append(shown, u.UnixNano())
				}
			}
			ns, reason := c.parse([]byte(text))
			switch len(shown) {
			case 0:
				require.Contains(t, reason, "does not exist in", text)
			case 1:
				require.Empty(t, reason, text)
				require.Equal(t, shown[0], ns, text)
			default:
				require.Contains(t, reason, "happened twice in", text)
			}
		})
	}
}

func TestParseFormat(t *testing.T) {
	half := time.Date(2013, 2, 8, 9, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		format, text string
		want         time.Time
	}{
		{"%d/%m/%Y %H:%M", "08/02/2013 09:30", half},
		{"%m/%d/%y %I:%M %p", "02/08/13 09:30 AM", half},
		{"2006-01-02 03-PM", "2013-02-08 09-AM", half.Add(-30 * time.Minute)},
		{"%Y-%m-%d %I-%p", "2013-02-08 09-AM", half.Add(-30 * time.Minute)},
		{"%Y-%m-%dT%H:%M:%S.%f%z", "2013-02-08T04:30:00.000001-0500", half.Add(1000)},
		{"%Y-%m-%dT%H:%M:%S.%f", "2013-02-08T09:30:00", half},
		{"%Y-%m-%d %H:%M%z", "2013-02-08 04:30-05:00", half}, {"%Y-%m-%d %H:%M%z", "2013-02-08 04:30-05", half}, {"%Y-%m-%d %H:%M%z", "2013-02-08 09:30Z", half},
		{"%Y %j %H%M", "2013 039 0930", half},
		{"%d %b %Y %R", "08 Feb 2013 09:30", half},
		{"2006-01-02T15:04Z", "2013-02-08T09:30Z", half},
		{"epoch-ms", "1360315800000", half},
		{"epoch-us", "1360315800000000", half},
		{"epoch-ns", "1360315800000000000", half},
		{"epoch-s", strconv.FormatInt(half.Unix(), 10), half},
		{"%d/%m/%Y %H:%M", "8/2/2013 9:30", half}, // leading zeros may be lacking
		{"%m/%d/%Y %I:%M:%S %p", "2/8/2013 9:30:00 AM", half},
		{"%Y%m%d%H%M%S", "20130208093000", half},
		{"%Y-%m-%d %H", "2013-02-08 9", half.Add(-30 * time.Minute)},
		{"%Y-%m-%d s-of-day", "2013-02-08 34200", half},
		{"%d/%m/%Y ms-of-day", "8/2/2013 34200000.5", half.Add(500 * time.Microsecond)},
		{"%Y", "2013", time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"%Y-%m", "2013-02", time.Date(2013, 2, 1, 0, 0, 0, 0, time.UTC)},
		{"%B %Y", "February 2013", time.Date(2013, 2, 1, 0, 0, 0, 0, time.UTC)},
		{"excel", "41313.3958333333", half}, {"excel", "41313.39583333333214", half}, {"excel", "41313", half.Truncate(24 * time.Hour)},
		{"excel", "61", time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC)}, {"excel", "41312.99999999999", half.Truncate(24 * time.Hour)},
	} {
		f, err := parseFormat(c.format)
		require.NoError(t, err, c.format)
		r := clockReader{timeFormat: f}
		ns, reason := r.parse([]byte(c.text))
		require.Empty(t, reason, c.format)
		require.Equal(t, c.want.UnixNano(), ns, c.format)
		_, reason = r.parse([]byte("nonsense"))
		require.NotEmpty(t, reason)
	}
	for _, format := range []string{"x", "%d %H:%M", "%m-%d", "%Y %d", "%Y-%m-%d %Z", "%Y-%m-%d %I:%M", "%Y-%m-%d %f", "%Y-%m-%d %", "%Y-%m-%d 2", "2006-01-02 15:04 MST", "epoch", "epoch-min", "%Y-%m-%d %H:%M ms-of-day", "epoch-s ms-of-day", "Excel", ""} {
		_, err := parseFormat(format)
		require.Error(t, err, format)
		require.ErrorContains(t, err, "strftime")
	}
}

func TestTimeHints(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("no time zone data on this machine")
	}
	for _, c := range []struct{ first, cell, want string }{
		{"2024-01-02 09:30", "2024-03-10 02:30", hintOffset},
		{"2024-01-02 09:30", "2024-11-03 01:30", hintTwice},
		{"Tue, 2 Jan 2024", "Wed, 2 Jan 2024", hintSkip},
		{"2024-01-02", "11:34", hintSkip},
		{"2024-01-02 09:30", "", hintSkip},
		{"2024-01-02 09:30", "total", hintSkip},
		{"2024-01-02 09:30", "0001-01-01 00:00", hintSkip},
		{"1360281600", "9999999999", hintSkip},
		{"2024-01-02 09:30", "03-Jan-24", hintTimeFormat},
		{"1360281600", "1360281600000", hintTimeFormat},
	} {
		r := reader(t, newYork, c.first)
		_, reason := r.parse([]byte(c.cell))
		require.NotEmpty(t, reason, c.cell)
		require.Equal(t, c.want, r.hint([]byte(c.cell), reason), c.cell)
	}
	f, err := parseFormat("epoch-s")
	require.NoError(t, err)
	r := clockReader{timeFormat: f}
	_, reason := r.parse([]byte("1360281600000"))
	require.Equal(t, hintTimeFormat, r.hint([]byte("1360281600000"), reason), "another unit would do")
}

func TestWhyNoTime(t *testing.T) {
	for cell, want := range map[string]string{
		"2013Q1": "is a quarter", "2013-Q4": "is a quarter", "2013": "is a year", "43774": "too small to be taken for a time", "43774.39583": "too small", "17": "too small",
		"11:34": "is a time of day without a date", "09:30:00.5": "is a time of day", "2013-02-08 16:00 EST": "names its zone by letters", "2013-02-08 16:00:00 America/New_York": "names its zone",
		"2/8/13": "has a year of two digits", "2/8/13 9:30": "has a year of two digits", "x": "is not a time in a format", "": "is not a time in a format", "2013-02-30": "is not a time in a format",
		"2013-02-08 13:30 PM": "is not a time in a format",
	} {
		reason, hint := whyNoTime(cell)
		require.Contains(t, reason, want, cell)
		require.NotEmpty(t, hint)
	}
	rapid.Check(t, func(t *rapid.T) { // no text panics
		whyNoTime(string(rapid.SliceOfN(rapid.SampledFrom([]byte("0123456789-/.: TZ+AMPQ")), 0, 20).Draw(t, "text")))
	})
}

func TestDateAndTimeOfDay(t *testing.T) {
	day := time.Date(2013, 2, 28, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		date   string
		clocks []string
		want   []time.Duration
	}{
		{"2013-02-28", []string{"09:30", "16:00:00.5"}, []time.Duration{9*time.Hour + 30*time.Minute, 16*time.Hour + 5e8}},
		{"28/2/2013", []string{"0930", "1600", "0"}, []time.Duration{9*time.Hour + 30*time.Minute, 16 * time.Hour, 0}},
		{"20130228", []string{"930", "5", "1600"}, []time.Duration{9*time.Hour + 30*time.Minute, 5 * time.Minute, 16 * time.Hour}},
		{"20130228", []string{"93000", "0", "160001", "130"}, []time.Duration{9*time.Hour + 30*time.Minute, 0, 16*time.Hour + 1e9, 90e9}},
		{"2013.02.28", []string{"093000.25", "160000"}, []time.Duration{9*time.Hour + 30*time.Minute + 25e7, 16 * time.Hour}},
		{"Feb 28, 2013", []string{"9:30 AM", "4:00 PM"}, []time.Duration{9*time.Hour + 30*time.Minute, 16 * time.Hour}},
		{"20130228", []string{"14:30Z", "16:00+01:00"}, []time.Duration{14*time.Hour + 30*time.Minute, 15 * time.Hour}},
	} {
		var cells []string
		for _, clock := range c.clocks {
			cells = append(cells, c.date+" "+clock)
		}
		f, at := detectFormat(sampled(cells...), true)
		require.Zero(t, at, c)
		r := clockReader{timeFormat: f}
		for i, clock := range c.clocks {
			ns, reason := r.parseBoth([]byte(" "+c.date), []byte(clock+" "))
			require.Empty(t, reason, "%s %s", c.date, clock)
			require.Equal(t, day.Add(c.want[i]).UnixNano(), ns, "%s %s", c.date, clock)
		}
		for _, clock := range []string{"", "noon", "25:00", "2460", "-1", "1234567"} {
			_, reason := r.parseBoth([]byte(c.date), []byte(clock))
			require.NotEmpty(t, reason, "%s %s", c.date, clock)
		}
	}
	for _, clock := range []string{"9", "10", "noon", "2400"} { // hours, or minutes? unless a format says so
		_, at := detectFormat(sampled("2013-02-28 "+clock, "2013-02-28 "+clock), true)
		require.Equal(t, -1, at, clock)
	}
	f, at := detectFormat(sampled("3/4/2013 0930", "13/4/2013 93000"), true)
	require.Zero(t, at)
	require.Equal(t, dayFirst, f.family)
	require.Equal(t, 6, f.packed)
}

func TestTimeOfDayFormats(t *testing.T) {
	day := time.Date(2014, 6, 5, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		format, cell string
		want         time.Duration
		reason       string
	}{
		{"ms-of-day", "34200000", 9*time.Hour + 30*time.Minute, ""},
		{"ms-of-day", "34200000.25", 9*time.Hour + 30*time.Minute + 250*time.Microsecond, ""},
		{"s-of-day", "34200.5", 9*time.Hour + 30*time.Minute + 5e8, ""},
		{"s-of-day", "0", 0, ""},
		{"us-of-day", "86399999999", 24*time.Hour - 1000, ""},
		{"ns-of-day", "86399999999999", 24*time.Hour - 1, ""},
		{"%H:%M:%S", "09:30:00", 9*time.Hour + 30*time.Minute, ""},
		{"%H%M", "0930", 9*time.Hour + 30*time.Minute, ""},
		{"s-of-day", "86400", 0, "is not a time of day in seconds since midnight"},
		{"ms-of-day", "-1", 0, "is not a time of day in milliseconds"},
		{"ms-of-day", "x", 0, "is not a time of day in milliseconds"},
		{"ms-of-day", "", 0, "is empty"},
		{"ns-of-day", "0.5", 0, "is not a whole number of nanoseconds"},
		{"%H:%M:%S", "9h", 0, "is not a time like"},
	} {
		f, err := parseFormat(c.format)
		require.NoError(t, err)
		require.True(t, f.undated, c.format)
		r := clockReader{timeFormat: f.dated(), date: []byte("2014-06-05")}
		ns, reason := r.parse([]byte(c.cell))
		require.Contains(t, reason, c.reason, c.cell)
		require.Equal(t, c.reason == "", reason == "", reason)
		if reason == "" {
			require.Equal(t, day.Add(c.want).UnixNano(), ns, c.cell)
		}
	}
}

func TestDateInName(t *testing.T) {
	for name, want := range map[string]string{
		"20131007_trade.zip": "2013-10-07", "20140605_aapl_minute_trade.csv": "2014-06-05", "bars-2013-10-07.csv": "2013-10-07", "2013.10.07": "2013-10-07",
		"aapl_20131007": "2013-10-07", "20131007_20131007.csv": "2013-10-07", "x20131007y": "2013-10-07", "20139907_20131007": "2013-10-07",
	} {
		date, reason := nameDate(name)
		require.Empty(t, reason, name)
		require.Equal(t, want, date, name)
	}
	for name, want := range map[string]string{
		"aapl.csv": "holds no date", "20131007_20131008.csv": "holds two dates in its name, 2013-10-07 and 2013-10-08", "120131007": "holds no date", "201310071": "holds no date",
		"20130230": "holds no date", "2013-1007": "holds no date", "": "holds no date",
	} {
		_, reason := nameDate(name)
		require.Contains(t, reason, want, name)
	}
}

// What a format is called can be given as Options.TimeFormat, and means the same.
func TestTimeFormatNames(t *testing.T) {
	for cell, want := range map[string]string{
		"2013-02-28": "%Y-%m-%d", "13/2/2013": "%d/%m/%Y", "2/13/2013 9:30": "%m/%d/%Y %H:%M", "20130228": "%Y%m%d", "20130228093000": "%Y%m%d%H%M%S", "20130228 0930": "%Y%m%d %H%M",
		"20130228T093000Z": "%Y%m%dT%H%M%S%z", "2013-02-28T09:30:00.125": "%Y-%m-%dT%H:%M:%S.%f", "2013-02-28 09:30:00-05:00": "%Y-%m-%d %H:%M:%S%z", "2013-02": "%Y-%m",
		"28-Feb-2013": "%d-%b-%Y", "Feb 28 2013": "%b %d %Y", "28 Feb 2013 9:30": "%d %b %Y %H:%M", "2/28/2013 9:30 AM": "%m/%d/%Y %I:%M %p", "2013-02-28 09-AM": "%Y-%m-%d %I-%p",
		"1362043800": "epoch-s", "1362043800000": "epoch-ms", "1362043800000000": "epoch-us", "1362043800000000000": "epoch-ns", "Thu, 28 Feb 2013": "%a, %d %b %Y",
	} {
		f, at := detect(sampled(cell))
		require.Zero(t, at, cell)
		require.Equal(t, want, f.String(), cell)
		g, err := parseFormat(f.String())
		require.NoError(t, err, cell)
		found, given := clockReader{timeFormat: f}, clockReader{timeFormat: g}
		a, reason := found.parse([]byte(cell))
		require.Empty(t, reason, cell)
		b, reason := given.parse([]byte(cell))
		require.Empty(t, reason, cell)
		require.Equal(t, a, b, cell)
	}
}

func TestAmbiguousTimes(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("no time zone data on this machine")
	}
	for _, c := range []struct{ twice, want string }{{"first", "2024-11-03T05:30:00Z"}, {"last", "2024-11-03T06:30:00Z"}, {"", ""}, {"error", ""}} {
		r := reader(t, newYork, "2024-01-02 09:30")
		var count int64
		r.twice, r.count = c.twice, &count
		ns, reason := r.parse([]byte("2024-11-03 01:30"))
		if c.want == "" {
			require.Contains(t, reason, "happened twice in America/New_York")
			require.Zero(t, count)
			continue
		}
		require.Empty(t, reason)
		require.Equal(t, c.want, time.Unix(0, ns).UTC().Format(time.RFC3339))
		require.Equal(t, int64(1), count)
		_, reason = r.parse([]byte("2024-03-10 02:30"))
		require.Contains(t, reason, "does not exist in America/New_York", "no choice makes it exist")
	}
}

func BenchmarkZones(b *testing.B) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		b.Skip("no time zone data on this machine")
	}
	var minutes, days [][]byte
	for i := range 10_000 {
		minutes = append(minutes, []byte(time.Unix(int64(i)*60+1.38e9, 0).UTC().Format("2006-01-02 15:04:05")))
		days = append(days, []byte(time.Unix(int64(i)*86400, 0).UTC().Format("2006-01-02")))
	}
	for name, cells := range map[string][][]byte{"minutes": minutes, "days": days} {
		for _, loc := range []*time.Location{time.UTC, newYork} {
			b.Run(name+"/"+loc.String(), func(b *testing.B) {
				r := reader(b, loc, string(cells[0]))
				r.twice = "first"
				for i := 0; b.Loop(); i = (i + 1) % len(cells) {
					r.parse(cells[i])
				}
			})
		}
	}
}
