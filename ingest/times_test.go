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
	return clockReader{timeFormat: f, loc: loc}
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
		"-86400": time.Unix(-86400, 0), "-86400.5": time.Unix(-86400, -5e8),
	} {
		c := reader(t, nil, text)
		ns, reason := c.parse([]byte(text))
		require.Empty(t, reason, text)
		require.Equal(t, want.UnixNano(), ns, text)
	}
	for _, text := range []string{"", "x", "11:34", "2013", "1", "0", "99999", "2013-02-29", "2013-13-01", "31/31/2013", "2/8/13", "2013-02-28 24:00", "2013-02-28 09:60", "2013-02-28 09:30:60",
		"2013-02-28 9", "2013-02-28x", "2013-02/28", "20130229", "2013-02-28 09:30 EST", "2013-02-28 13:30 PM", "1.5e9", "AAPL", "4,787,699", "2019-10-17 09-AM", "28-Feb-13", "+1362043800"} {
		f, at := detect(sampled(text))
		if at == 0 && f.family == epoch {
			require.Contains(t, []string{"99999", "20130229"}, text) // numbers are counts
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
		for fam := yearFirst; fam <= epoch; fam++ {
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
		{[]string{"20130299", "20130208"}, compact, 1},
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
		{"%Y %j %H%M", "2013 039 0930", half},
		{"%d %b %Y %R", "08 Feb 2013 09:30", half},
		{"2006-01-02T15:04Z", "2013-02-08T09:30Z", half},
		{"epoch-ms", "1360315800000", half},
		{"epoch-us", "1360315800000000", half},
		{"epoch-ns", "1360315800000000000", half},
		{"epoch-s", strconv.FormatInt(half.Unix(), 10), half},
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
	for _, format := range []string{"x", "%H:%M", "%Y-%m", "%Y-%m-%d %Z", "%Y-%m-%d %I:%M", "%Y-%m-%d %f", "%Y-%m-%d %", "%Y-%m-%d 2", "2006-01-02 15:04 MST", "2006-01", "epoch", "epoch-min"} {
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
		{"2024-01-02 09:30", "2024-11-03 01:30", hintOffset},
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
