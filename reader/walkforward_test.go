package reader_test

import (
	"math"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // for machines that know no zones

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// drawWalk draws a panel of some tickers on one calendar, where clocks change and months end, and how to walk over it.
func drawWalk(t *rapid.T) (*craft.Content, oracle.Walk) {
	zone := rapid.SampledFrom([]string{"", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"}).Draw(t, "zone")
	c := &craft.Content{Schema: &format.Schema{Zone: zone, Unit: rapid.SampledFrom([]format.Unit{format.Second, format.Millisecond}).Draw(t, "unit"), Groups: []format.Group{
		{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}}},
	}}}
	second := int64(time.Second / c.Schema.Unit.Duration())
	// Days before a leap day, changes of clocks, a day that Apia left out, and the end of a year; and times before 1970.
	day := rapid.SampledFrom([]string{"2020-01-31", "2019-02-27", "2021-03-12", "2021-10-28", "2011-12-27", "1999-12-30", "1969-10-20"}).Draw(t, "day")
	start, err := time.Parse(time.DateOnly, day)
	require.NoError(t, err)
	step := rapid.SampledFrom([]int64{3600, 86400, 86400, 7 * 86400, 1800}).Draw(t, "step") * second
	now := start.Unix()*second + rapid.SampledFrom([]int64{0, 5, 7 * 3600, 9000, 86399}).Draw(t, "time of day")*second
	var times []int64
	for range rapid.IntRange(1, 60).Draw(t, "rows") {
		times = append(times, now)
		now += step * rapid.SampledFrom([]int64{1, 1, 1, 1, 3, 40}).Draw(t, "step")
	}
	for k := range rapid.IntRange(1, 3).Draw(t, "tickers") {
		from := rapid.IntRange(0, len(times)-1).Draw(t, "first")
		own := times[from:rapid.IntRange(from, len(times)).Draw(t, "behind")]
		c.Tickers = append(c.Tickers, oracle.Ticker{
			Name: string(rune('A' + k)), Times: own, Cells: [][]float32{make([]float32, len(own))}, Ends: make([][]int64, 1),
		})
	}
	var f oracle.Walk
	var period func(label string) oracle.Period
	if kind := rapid.IntRange(0, 2).Draw(t, "kind"); kind == 0 {
		period = func(label string) oracle.Period {
			return oracle.Period{Times: rapid.Int64Range(1, 20).Draw(t, label)}
		}
	} else {
		period = func(label string) oracle.Period {
			if rapid.Bool().Draw(t, label+" in months") {
				return oracle.Period{Months: rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 12, 13}).Draw(t, label)}
			}
			return oracle.Period{Units: rapid.SampledFrom([]int64{1, 10, 24, 24 * 7, 24 * 30}).Draw(t, label) * 3600 * second}
		}
	}
	f.Every = period("every")
	if f.Every.Times == 0 && f.Every.Months == 0 { // the oracle makes every fold, those without windows too
		f.Every.Units = max(f.Every.Units, (times[len(times)-1]-times[0])/200)
	}
	if rapid.Bool().Draw(t, "train?") {
		f.Train = period("train")
	}
	if rapid.Bool().Draw(t, "valid?") {
		f.Valid = period("valid")
	}
	if f.Train == (oracle.Period{}) || rapid.Bool().Draw(t, "start?") {
		v := rapid.SampledFrom(times).Draw(t, "start") + rapid.SampledFrom([]int64{0, 0, 1, -1, -30 * 86400 * second, 3600 * second}).Draw(t, "beside")
		f.Start = &v
	}
	return c, f
}

// walkOf turns a walk of the oracle into one of the reader.
func walkOf(unit format.Unit, f oracle.Walk) reader.WalkForward {
	period := func(p oracle.Period) reader.Period {
		return reader.Period{Months: int(p.Months), Duration: time.Duration(p.Units) * unit.Duration(), Times: int(p.Times)}
	}
	got := reader.WalkForward{Every: period(f.Every), Train: period(f.Train), Valid: period(f.Valid)}
	if f.Start != nil {
		got.Start = unit.Time(*f.Start)
	}
	return got
}

// requireFolds compares folds and their windows with those of the oracle.
func requireFolds(t require.TestingT, c *craft.Content, q oracle.Query, reaches []oracle.Reach, f oracle.Walk, sp oracle.Splits, got []reader.Fold) {
	unit := c.Schema.Unit
	all, err := oracle.Windows(c.Panel(), q)
	require.NoError(t, err)
	var anchors []int64
	for _, w := range all {
		anchors = append(anchors, w.Time)
	}
	slices.Sort(anchors)
	anchors = slices.Compact(anchors)
	if len(anchors) == 0 {
		require.Empty(t, got)
		return
	}
	zone, err := time.LoadLocation(c.Schema.Zone)
	require.NoError(t, err)
	want := oracle.Folds(anchors, f, unit.Duration(), zone)
	require.Len(t, got, len(want))
	same := func(want *oracle.Range, got reader.TimeRange, what string) {
		if want == nil {
			require.Zero(t, got, what)
			return
		}
		require.Equal(t, rangesOf(unit, []oracle.Range{*want})[0], got, what)
	}
	for i := range want {
		same(&want[i].Test, got[i].Test, "test")
		same(want[i].Valid, got[i].Valid, "valid")
		same(&want[i].Train, got[i].Train, "train")
		each := sp
		each.Test, each.Train, each.Valid = []oracle.Range{want[i].Test}, []oracle.Range{want[i].Train}, nil
		if want[i].Valid != nil {
			each.Valid = []oracle.Range{*want[i].Valid}
		}
		parts, err := oracle.Split(c.Panel(), q, reaches, each)
		require.NoError(t, err)
		requireWindows(t, parts.Test, got[i].Parts.Test, "fold %d, test", i)
		requireWindows(t, parts.Valid, got[i].Parts.Valid, "fold %d, valid", i)
		requireWindows(t, parts.Train, got[i].Parts.Train, "fold %d, train", i)
		require.NotZero(t, got[i].Parts.Test.Len())
	}
}

func TestWalkForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, f := drawWalk(t)
		s, err := reader.OpenBytes(c.Build(), nil)
		require.NoError(t, err)
		q := oracle.Query{Lookback: rapid.Int64Range(1, 3).Draw(t, "lookback"), Targets: []string{}}
		sp := oracle.Splits{EmbargoTimes: rapid.IntRange(0, 2).Draw(t, "embargo")}
		if rapid.Bool().Draw(t, "targets") {
			q.Targets, q.Horizons = []string{"x"}, []int64{rapid.Int64Range(0, 3).Draw(t, "horizon")}
			sp.Reach = &oracle.Reach{Kind: oracle.ReachRows, Amount: 1}
		}
		w, err := s.Windows(queryOf(q))
		require.NoError(t, err)
		walk := walkOf(c.Schema.Unit, f)
		walk.EmbargoTimes = sp.EmbargoTimes
		if sp.Reach != nil {
			walk.Reach = &reader.Reach{Rows: 1}
		}
		got, err := w.WalkForward(walk)
		require.NoError(t, err)
		requireFolds(t, c, q, make([]oracle.Reach, 1), f, sp, got)

		// Together the tests are all windows from the first one's beginning on.
		tested := 0
		for _, fold := range got {
			tested += fold.Parts.Test.Len()
		}
		if len(got) > 0 {
			rest, err := w.Between(got[0].Test.From, time.Time{})
			require.NoError(t, err)
			require.Equal(t, rest.Len(), tested)
		}
	})
}

// daily is a panel of one ticker with a row at each time of the given layout.
func daily(zone string, unit format.Unit, times ...int64) *craft.Content {
	return &craft.Content{
		Schema: &format.Schema{Zone: zone, Unit: unit, Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}}},
		}},
		Tickers: []oracle.Ticker{{Name: "A", Times: times, Cells: [][]float32{make([]float32, len(times))}, Ends: make([][]int64, 1)}},
	}
}

// Bounds of months: the 31st does not decay, and clocks that change move no bound for good.
func TestMonths(t *testing.T) {
	clock := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return v
	}
	for name, c := range map[string]struct {
		zone, start, every string
		want               []string
	}{
		"the 31st": {"", "2020-01-31T00:00:00Z", "1mo", []string{
			"2020-01-31T00:00:00Z", "2020-02-29T00:00:00Z", "2020-03-31T00:00:00Z", "2020-04-30T00:00:00Z", "2020-05-31T00:00:00Z",
		}},
		"a leap day": {"", "2020-02-29T12:00:00Z", "1y", []string{"2020-02-29T12:00:00Z", "2021-02-28T12:00:00Z", "2022-02-28T12:00:00Z"}},
		"a time that does not exist": {"America/New_York", "2021-02-14T02:30:00-05:00", "1mo", []string{
			"2021-02-14T02:30:00-05:00", "2021-03-14T03:30:00-04:00", "2021-04-14T02:30:00-04:00",
		}},
		"a time that is there twice": {"America/New_York", "2021-10-07T01:30:00-04:00", "1mo", []string{
			"2021-10-07T01:30:00-04:00", "2021-11-07T01:30:00-04:00", "2021-12-07T01:30:00-05:00",
		}},
		"half an hour": {"Australia/Lord_Howe", "2021-09-03T02:15:00+10:30", "1mo", []string{
			"2021-09-03T02:15:00+10:30", "2021-10-03T02:45:00+11:00", "2021-11-03T02:15:00+11:00",
		}},
		"a day that was left out": {"Pacific/Apia", "2011-11-30T12:00:00-10:00", "1mo", []string{
			"2011-11-30T12:00:00-10:00", "2011-12-31T12:00:00+14:00", "2012-01-30T12:00:00+14:00",
		}},
		"days are 24 hours": {"America/New_York", "2021-03-13T12:00:00-05:00", "1d", []string{
			"2021-03-13T12:00:00-05:00", "2021-03-14T13:00:00-04:00",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var times []int64
			for _, v := range c.want { // a row at each bound belongs to the fold that begins there
				times = append(times, clock(v).Unix())
			}
			s := open(t, daily(c.zone, format.Second, times...), reader.Map)
			every, err := reader.ParsePeriod(c.every)
			require.NoError(t, err)
			folds, err := windows(t, s, reader.Query{Lookback: 1}).WalkForward(reader.WalkForward{Every: every, Start: clock(c.start)})
			require.NoError(t, err)
			require.Len(t, folds, len(c.want))
			for i, f := range folds {
				require.True(t, clock(c.want[i]).Equal(f.Test.From), "fold %d begins at %s, not %s", i, f.Test.From, c.want[i])
				require.Equal(t, 1, f.Parts.Test.Len())
				if i > 0 {
					require.Equal(t, folds[i-1].Test.To, f.Test.From)
				}
			}
		})
	}
}

// Folds without a test window cost nothing, however short they are.
func TestWalkForwardSkips(t *testing.T) {
	s := open(t, daily("", format.Nanosecond, math.MinInt64, 0, 5, math.MaxInt64), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 1})
	folds, err := w.WalkForward(reader.WalkForward{Every: reader.Period{Duration: 1}, Start: time.Unix(0, math.MinInt64)})
	require.NoError(t, err)
	require.Len(t, folds, 4)
	folds, err = w.WalkForward(reader.WalkForward{Every: reader.Period{Duration: 4}, Start: time.Unix(0, math.MinInt64)})
	require.NoError(t, err)
	require.Len(t, folds, 4, "-2^63 and 0 are multiples of 4, 5 is behind the next")
	require.Equal(t, time.Unix(0, 4).UTC(), folds[2].Test.From)
	folds, err = w.WalkForward(reader.WalkForward{Every: reader.Period{Duration: math.MaxInt64}, Start: time.Unix(0, 1)})
	require.NoError(t, err)
	require.Len(t, folds, 1)
	require.Equal(t, 2, folds[0].Parts.Test.Len(), "[1, 2^63) holds 5 and 2^63-1")
	folds, err = w.WalkForward(reader.WalkForward{Every: reader.Period{Times: math.MaxInt}, Train: reader.Period{Times: 1}})
	require.NoError(t, err)
	require.Len(t, folds, 1)
	require.Equal(t, 3, folds[0].Parts.Test.Len())
	require.Equal(t, 1, folds[0].Parts.Train.Len())
	folds, err = w.WalkForward(reader.WalkForward{Every: reader.Period{Times: 1}, Train: reader.Period{Times: math.MaxInt}, Valid: reader.Period{Times: math.MaxInt}})
	require.NoError(t, err)
	require.Empty(t, folds)
}

func TestWalkForwardRefuses(t *testing.T) {
	month, ten := reader.Period{Months: 1}, reader.Period{Times: 10}
	s := open(t, daily("", format.Second, 0, 86400), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 1})
	for name, c := range map[string]struct {
		f    reader.WalkForward
		says string
	}{
		"no every":        {reader.WalkForward{Train: month}, "needs Every"},
		"no start":        {reader.WalkForward{Every: month}, "needs a Start"},
		"mixed":           {reader.WalkForward{Every: month, Train: ten}, "numbers of times"},
		"mixed valid":     {reader.WalkForward{Every: ten, Train: ten, Valid: month}, "numbers of times"},
		"two kinds":       {reader.WalkForward{Every: reader.Period{Months: 1, Duration: 1}, Train: month}, "Every"},
		"negative every":  {reader.WalkForward{Every: reader.Period{Months: -1}, Train: month}, "not negative"},
		"negative train":  {reader.WalkForward{Every: month, Train: reader.Period{Duration: -1}}, "Train"},
		"negative valid":  {reader.WalkForward{Every: ten, Train: ten, Valid: reader.Period{Times: -1}}, "Valid"},
		"too many months": {reader.WalkForward{Every: reader.Period{Months: math.MaxInt}, Train: month}, "months"},
		"embargo":         {reader.WalkForward{Every: month, Train: month, Embargo: -1}, "embargo"},
		"reach":           {reader.WalkForward{Every: month, Train: month, Reach: &reader.Reach{Rows: -1}}, "reach"},
		"year":            {reader.WalkForward{Every: month, Start: time.Date(-3, 1, 1, 0, 0, 0, 0, time.UTC)}, "years 1 to 9998"},
	} {
		t.Run(name, func(t *testing.T) {
			folds, err := w.WalkForward(c.f)
			require.ErrorIs(t, err, reader.ErrQuery)
			require.ErrorContains(t, err, c.says)
			require.Nil(t, folds)
		})
	}
	far := windows(t, open(t, daily("", format.Second, math.MinInt64, math.MaxInt64), reader.Map), reader.Query{Lookback: 1})
	_, err := far.WalkForward(reader.WalkForward{Every: month, Start: at(0)})
	require.ErrorIs(t, err, reader.ErrQuery)
	folds, err := far.WalkForward(reader.WalkForward{Every: reader.Period{Times: 1}, Train: reader.Period{Times: 1}})
	require.NoError(t, err)
	require.Len(t, folds, 1)
	require.Equal(t, 1, folds[0].Parts.Train.Len())
	require.Equal(t, 1, folds[0].Parts.Test.Len())

	unknown := windows(t, open(t, daily("Mars/Olympus", format.Second, 0), reader.Map), reader.Query{Lookback: 1})
	_, err = unknown.WalkForward(reader.WalkForward{Every: month, Start: at(0)})
	require.ErrorContains(t, err, "Mars/Olympus")
}

func TestParsePeriod(t *testing.T) {
	for text, want := range map[string]reader.Period{
		"20": {Times: 20}, "1mo": {Months: 1}, "5y": {Months: 60}, "36h": {Duration: 36 * time.Hour}, "10d": {Duration: 240 * time.Hour},
		"2w": {Duration: 336 * time.Hour}, "999999999": {Times: 999999999}, "10000y": {Months: 120000},
	} {
		got, err := reader.ParsePeriod(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "mo", "-1mo", "1.5y", "1 mo", "1m", "1min", "1mo ", "9999999999", "10001y", "120001mo", "99999999w", "2562048h"} {
		_, err := reader.ParsePeriod(text)
		require.ErrorIs(t, err, reader.ErrQuery, text)
		require.ErrorContains(t, err, text, text)
	}
}
