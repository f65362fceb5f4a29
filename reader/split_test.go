package reader_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// drawReaches declares a reach of each value column, in the schema and for the oracle.
func drawReaches(t *rapid.T, s *format.Schema) []oracle.Reach {
	reaches := make([]oracle.Reach, s.Columns())
	var ends []int64
	for k, p := range s.Places() {
		if s.Groups[p.Group].DType == format.Int64 {
			ends = append(ends, int64(k))
		}
	}
	for k, p := range s.Places() {
		c := &s.Groups[p.Group].Columns[p.Column]
		if c.Role != format.Value {
			continue
		}
		switch kind := rapid.IntRange(0, 7).Draw(t, "reach"); {
		case len(ends) > 0 && kind >= 3:
			reaches[k], c.ReachKind = oracle.Reach{Kind: oracle.ReachColumn, Amount: ends[0]}, format.ReachColumn
		case kind <= 1:
			reaches[k], c.ReachKind = oracle.Reach{Kind: oracle.ReachRows, Amount: rapid.Int64Range(0, 5).Draw(t, "rows")}, format.ReachRows
		case kind <= 3:
			reaches[k], c.ReachKind = oracle.Reach{Kind: oracle.ReachDuration, Amount: rapid.Int64Range(0, 30).Draw(t, "duration")}, format.ReachDuration
		}
		c.Reach = reaches[k].Amount
	}
	return reaches
}

// drawSplits draws ranges that tile part of the time and don't overlap, and an embargo.
func drawSplits(t *rapid.T, p *oracle.Panel) oracle.Splits {
	var s oracle.Splits
	times := p.DistinctTimes()
	if len(times) > 0 {
		var bounds []int64
		for range rapid.IntRange(1, 6).Draw(t, "bounds") {
			v := rapid.SampledFrom(times).Draw(t, "bound")
			if v > math.MinInt64 && v < math.MaxInt64 {
				v += rapid.Int64Range(-1, 1).Draw(t, "beside")
			}
			bounds = append(bounds, v)
		}
		slices.Sort(bounds)
		for i := 0; i <= len(bounds); i++ {
			var r oracle.Range
			if i > 0 {
				r.From = &bounds[i-1]
			}
			if i < len(bounds) {
				r.To = &bounds[i]
			}
			to := rapid.SampledFrom([]*[]oracle.Range{&s.Train, &s.Train, &s.Valid, &s.Test, new([]oracle.Range)}).Draw(t, "split")
			*to = slices.Insert(*to, rapid.IntRange(0, len(*to)).Draw(t, "place"), r)
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "embargo") {
	case 0, 1:
		s.Embargo = rapid.Int64Range(0, 20).Draw(t, "embargo")
	case 2, 3:
		s.EmbargoTimes = rapid.IntRange(0, 6).Draw(t, "times of embargo")
	case 4:
		s.EmbargoTimes = rapid.SampledFrom([]int{1 << 30, math.MaxInt}).Draw(t, "large embargo")
	}
	switch rapid.IntRange(0, 5).Draw(t, "given reach") {
	case 0:
		s.Reach = &oracle.Reach{Kind: oracle.ReachRows, Amount: rapid.SampledFrom([]int64{0, 1, 3, math.MaxInt64}).Draw(t, "rows")}
	case 1:
		s.Reach = &oracle.Reach{Kind: oracle.ReachDuration, Amount: rapid.SampledFrom([]int64{1, 9, math.MaxInt64}).Draw(t, "duration")}
	}
	return s
}

// rangesOf turns ranges of the oracle into those of the reader.
func rangesOf(unit format.Unit, ranges []oracle.Range) []reader.TimeRange {
	var out []reader.TimeRange
	for _, r := range ranges {
		var got reader.TimeRange
		if r.From != nil {
			got.From = unit.Time(*r.From)
		}
		if r.To != nil {
			got.To = unit.Time(*r.To)
		}
		out = append(out, got)
	}
	return out
}

// splitOf turns splits of the oracle into those of the reader.
func splitOf(unit format.Unit, s oracle.Splits) reader.Split {
	got := reader.Split{
		Train: rangesOf(unit, s.Train), Valid: rangesOf(unit, s.Valid), Test: rangesOf(unit, s.Test),
		Embargo: time.Duration(s.Embargo) * unit.Duration(), EmbargoTimes: s.EmbargoTimes,
	}
	if r := s.Reach; r != nil {
		got.Reach = new(reader.Reach)
		if r.Kind == oracle.ReachRows {
			got.Reach.Rows = r.Amount
		} else {
			got.Reach.Duration = time.Duration(r.Amount) * unit.Duration()
		}
	}
	return got
}

// requireWindows compares which windows there are.
func requireWindows(t require.TestingT, want []oracle.Window, got *reader.Windows, what ...any) {
	var a, b [][2]int64
	for _, w := range want {
		a = append(a, [2]int64{int64(w.Ticker), w.Anchor})
	}
	for i := range got.Len() {
		p := got.Locate(i)
		b = append(b, [2]int64{int64(p.Ticker), p.Anchor})
	}
	require.Equal(t, a, b, what...)
}

// splitCase is a panel, a query and a way to split its windows.
type splitCase struct {
	p       *oracle.Panel
	c       *craft.Content
	reaches []oracle.Reach
	q       oracle.Query
	sp      oracle.Splits
}

var splitCases = rapid.Custom(func(t *rapid.T) splitCase {
	var c splitCase
	wantsEnds := rapid.Bool().Draw(t, "label ends")
	for range 8 {
		c.p = oracle.DrawPanel(t)
		if !wantsEnds || slices.ContainsFunc(c.p.Groups, func(g oracle.Group) bool { return g.LabelEnd }) {
			break
		}
	}
	c.c = craft.FromPanel(c.p)
	c.reaches = drawReaches(t, c.c.Schema)
	for range 10 { // most queries have few windows
		c.q = oracle.DrawQuery(t, c.p)
		if w, _ := oracle.Windows(c.p, c.q); len(w) > 6 {
			break
		}
	}
	c.sp = drawSplits(t, c.p)
	return c
})

// check compares the windows of each split with those that are left when every window is compared with every one of the
// higher splits. It notes what came up.
func (c *splitCase) check(t require.TestingT, access reader.Access, note func(string, bool)) {
	s, err := reader.OpenBytes(c.c.Build(), &reader.Options{Access: access})
	require.NoError(t, err)
	w, err := s.Windows(queryOf(c.q))
	require.NoError(t, err)
	got, err := w.Split(splitOf(c.c.Schema.Unit, c.sp))
	want, wantErr := oracle.Split(c.p, c.q, c.reaches, c.sp)
	if wantErr != nil {
		note("no reach", true)
		require.ErrorIs(t, err, reader.ErrQuery)
		require.ErrorContains(t, err, "no declared reach")
		return
	}
	require.NoError(t, err)
	requireWindows(t, want.Test, got.Test, "test")
	requireWindows(t, want.Valid, got.Valid, "valid")
	requireWindows(t, want.Train, got.Train, "train")

	all, err := oracle.Windows(c.p, c.q)
	require.NoError(t, err)
	var inTest []oracle.Window
	inAny := 0
	for _, x := range all {
		holds := func(r oracle.Range) bool { return r.Holds(x.Time) }
		if slices.ContainsFunc(c.sp.Test, holds) {
			inTest = append(inTest, x)
		}
		if slices.ContainsFunc(slices.Concat(c.sp.Train, c.sp.Valid, c.sp.Test), holds) {
			inAny++
		}
	}
	requireWindows(t, inTest, got.Test, "every date to test is predicted")
	kept := len(want.Test) + len(want.Valid) + len(want.Train)
	note("purged", kept < inAny)
	note("none purged", kept == inAny && len(want.Test) > 0 && len(want.Train) > 0)
	note("all three", len(want.Test) > 0 && len(want.Valid) > 0 && len(want.Train) > 0)
	note("purged in part", kept < inAny && len(want.Train) > 0 && len(want.Test) > 0)
	for _, r := range c.reaches {
		note("reach in "+string(r.Kind), kept < inAny)
	}
}

func TestSplit(t *testing.T) {
	seen := map[string]int{}
	note := func(what string, yes bool) {
		if yes {
			seen[what]++
		}
	}
	for seed := range 3000 { // the same every time, so that no kind is missed by bad luck
		c := splitCases.Example(seed)
		c.check(t, []reader.Access{reader.Map, reader.Read}[seed%2], note)
	}
	t.Log(seen)
	for _, what := range []string{
		"no reach", "purged", "none purged", "all three", "purged in part", "reach in rows", "reach in duration", "reach in column", "reach in ",
	} {
		require.Greater(t, seen[what], 10, what)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := splitCases.Draw(t, "case")
		c.check(t, reader.Map, func(string, bool) {})
	})
}

// Label ends need not move forward with the rows, and only those of target rows count.
func TestSplitByLabelEnds(t *testing.T) {
	c := steps(20)
	c.Schema.Groups[1].Columns[0].ReachKind, c.Schema.Groups[1].Columns[0].Reach = format.ReachColumn, 4
	ends := c.Tickers[0].Ends[4]
	for r := range ends {
		ends[r] = format.NoTime
	}
	ends[4], ends[7] = 12, 19
	s := open(t, c, reader.Read)
	for _, q := range []struct {
		horizons []int
		length   int
		from, to int64 // to test
		train    []int64
	}{
		{[]int{0}, 1, 2, 6, []int64{13, 14, 15, 16, 17, 18, 19}}, // row 4 is a target, and its label ends last
		{[]int{0}, 1, 2, 8, nil},
		{[]int{0}, 2, 2, 6, []int64{13, 14, 15, 16, 17, 18}},
		{[]int{0}, 3, 2, 6, nil},
		{[]int{1, 3}, 1, 5, 6, []int64{9, 10, 11, 12, 13, 14, 15, 16}}, // rows 6 and 8, not 7
		{[]int{1, 2}, 1, 5, 6, nil},
		{[]int{-1, 0}, 1, 5, 6, []int64{14, 15, 16, 17, 18, 19}}, // rows 4 and 5, and training from row a - 1 on
	} {
		w := windows(t, s, reader.Query{Lookback: 2, Targets: []string{"ret"}, Horizons: q.horizons, TargetLength: q.length})
		parts, err := w.Split(reader.Split{Test: []reader.TimeRange{{at(q.from), at(q.to)}}, Train: []reader.TimeRange{{From: at(q.to)}}})
		require.NoError(t, err)
		require.EqualValues(t, q.to-q.from, parts.Test.Len())
		var got []int64
		for i := range parts.Train.Len() {
			got = append(got, parts.Train.Locate(i).Anchor)
		}
		require.Equal(t, q.train, got, "%+v", q)
	}
}

func TestBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := oracle.DrawPanel(t)
		q := oracle.DrawQuery(t, p)
		q.From, q.To = nil, nil
		s, err := reader.OpenBytes(craft.FromPanel(p).Build(), nil)
		require.NoError(t, err)
		w, err := s.Windows(queryOf(q))
		require.NoError(t, err)
		ranged := oracle.DrawQuery(t, p)
		q.From, q.To = ranged.From, ranged.To
		rq := queryOf(q)
		want, err := oracle.Windows(p, q)
		require.NoError(t, err)
		if q.From != nil && q.To != nil && *q.To < *q.From {
			_, err := w.Between(rq.From, rq.To)
			require.ErrorIs(t, err, reader.ErrQuery)
			return
		}
		got, err := w.Between(rq.From, rq.To)
		require.NoError(t, err)
		requireWindows(t, want, got)
	})
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func TestSplitRefuses(t *testing.T) {
	s := open(t, steps(30, 20), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 2, Targets: []string{"ret"}, Horizons: []int{0}})
	zero := &reader.Reach{}
	for name, c := range map[string]struct {
		sp   reader.Split
		says string
	}{
		"no reach": {reader.Split{}, `no declared reach of target "ret"`},
		"overlap of splits": {reader.Split{Reach: zero, Train: []reader.TimeRange{{To: at(10)}},
			Test: []reader.TimeRange{{From: at(9)}}}, "a range of train and one of test overlap at 1970-01-01 00:00:09"},
		"overlap in a split": {reader.Split{Reach: zero, Test: []reader.TimeRange{{at(9), at(12)}, {at(1), at(3)}, {at(11), at(20)}}}, "test and one of test overlap"},
		"same range":         {reader.Split{Reach: zero, Test: []reader.TimeRange{{}}, Valid: []reader.TimeRange{{}}}, "overlap"},
		"backwards":          {reader.Split{Reach: zero, Valid: []reader.TimeRange{{at(9), at(8)}}}, "valid: the range from"},
		"negative embargo":   {reader.Split{Reach: zero, Embargo: -1}, "embargo"},
		"negative times":     {reader.Split{Reach: zero, EmbargoTimes: -1}, "embargo"},
		"two embargoes":      {reader.Split{Reach: zero, Embargo: 1, EmbargoTimes: 1}, "one of the two"},
		"negative rows":      {reader.Split{Reach: &reader.Reach{Rows: -1}}, "reach"},
		"negative duration":  {reader.Split{Reach: &reader.Reach{Duration: -1}}, "reach"},
		"two reaches":        {reader.Split{Reach: &reader.Reach{Rows: 1, Duration: 1}}, "one of the two"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Split(c.sp)
			require.ErrorIs(t, err, reader.ErrQuery)
			require.ErrorContains(t, err, c.says)
			require.Zero(t, got)
		})
	}
	// Empty ranges overlap nothing; an embargo of all time leaves only the highest split.
	parts, err := w.Split(reader.Split{
		Reach: zero, Embargo: math.MaxInt64,
		Test: []reader.TimeRange{{at(10), at(20)}, {at(15), at(15)}}, Train: []reader.TimeRange{{To: at(10)}, {From: at(20)}, {at(12), at(12)}},
	})
	require.NoError(t, err)
	require.Equal(t, 20, parts.Test.Len())
	require.Zero(t, parts.Train.Len())

	require.NoError(t, s.Close())
	_, err = w.Split(reader.Split{Reach: zero})
	require.ErrorIs(t, err, reader.ErrClosed)
	_, err = w.Between(time.Time{}, time.Time{})
	require.ErrorIs(t, err, reader.ErrClosed)
}

// Durations that are no whole units are rounded up.
func TestSplitRoundsUp(t *testing.T) {
	w := windows(t, open(t, steps(10), reader.Map), reader.Query{Lookback: 1, Targets: []string{"ret"}, Horizons: []int{0}})
	split := func(reach, embargo time.Duration) int {
		parts, err := w.Split(reader.Split{
			Test: []reader.TimeRange{{From: at(8)}}, Train: []reader.TimeRange{{To: at(8)}}, Reach: &reader.Reach{Duration: reach}, Embargo: embargo,
		})
		require.NoError(t, err)
		return parts.Train.Len()
	}
	require.Equal(t, 8, split(0, 0))
	require.Equal(t, 7, split(1, 0))
	require.Equal(t, 7, split(0, time.Second))
	require.Equal(t, 6, split(time.Second, 1))
	require.Equal(t, 5, split(time.Second+1, time.Second))
}

// Returns are noise, and the label is the sum of the next 20 of them, so nothing predicts it. A model that remembers the
// training label nearest in time seems to, if the windows are divided by range alone: labels of both sides share returns.
// After a split it does not.
func TestSplitDoesNotLeak(t *testing.T) {
	const tickers, rows, ahead = 40, 3000, 20
	c := &craft.Content{Schema: &format.Schema{Unit: format.Second, Groups: []format.Group{
		{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "ret"}}},
		{Name: "targets", DType: format.Float32, Columns: []format.Column{{Name: "ret20", ReachKind: format.ReachRows, Reach: ahead}}},
	}}}
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range tickers {
		returns, labels, times := make([]float32, rows), make([]float32, rows), make([]int64, rows)
		for r := range rows {
			returns[r], times[r] = float32(rng.NormFloat64()), int64(r)
		}
		for r := range rows {
			labels[r] = float32(math.NaN())
			if r+ahead < rows {
				sum := 0.0
				for _, v := range returns[r+1 : r+1+ahead] {
					sum += float64(v)
				}
				labels[r] = float32(sum)
			}
		}
		c.Tickers = append(c.Tickers, oracle.Ticker{Name: strings.Repeat("A", 1+k), Times: times, Cells: [][]float32{returns, labels}, Ends: make([][]int64, 2)})
	}
	w := windows(t, open(t, c, reader.Map), reader.Query{Lookback: 5, Horizons: []int{0}})

	// Blocks of 40 rows to test, every 200.
	var sp reader.Split
	for from := int64(0); from < rows; from += 200 {
		sp.Train = append(sp.Train, reader.TimeRange{From: at(from), To: at(from + 160)})
		sp.Test = append(sp.Test, reader.TimeRange{From: at(from + 160), To: at(from + 200)})
	}
	// coefficient is the correlation of the labels of the test windows with those of the nearest training windows.
	coefficient := func(train, test []int) float64 {
		label := func(i int) float64 { p := w.Locate(i); return float64(c.Tickers[p.Ticker].Cells[1][p.Anchor]) }
		var n, sx, sy, sxx, syy, sxy float64
		for _, i := range test {
			k := sort.SearchInts(train, i)
			best := math.MaxInt
			for _, j := range train[max(0, k-1):min(len(train), k+1)] {
				a, b := w.Locate(i), w.Locate(j)
				if a.Ticker == b.Ticker && (best == math.MaxInt || abs(j-i) < abs(best-i)) {
					best = j
				}
			}
			if best == math.MaxInt {
				continue
			}
			x, y := label(best), label(i)
			n, sx, sy, sxx, syy, sxy = n+1, sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
		}
		return (sxy - sx*sy/n) / math.Sqrt((sxx-sx*sx/n)*(syy-sy*sy/n))
	}
	numbers := func(parts ...*reader.Windows) (out []int) {
		for _, part := range parts {
			for i := range part.Len() {
				p := part.Locate(i)
				number, ok := w.Number(p.Ticker, p.Anchor)
				require.True(t, ok)
				out = append(out, number)
			}
		}
		slices.Sort(out)
		return out
	}
	naive := func(ranges []reader.TimeRange) (out []*reader.Windows) {
		for _, r := range ranges {
			part, err := w.Between(r.From, r.To)
			require.NoError(t, err)
			out = append(out, part)
		}
		return out
	}
	leaky := coefficient(numbers(naive(sp.Train)...), numbers(naive(sp.Test)...))
	parts, err := w.Split(sp)
	require.NoError(t, err)
	require.Equal(t, numbers(naive(sp.Test)...), numbers(parts.Test), "every date to test is predicted")
	clean := coefficient(numbers(parts.Train), numbers(parts.Test))
	t.Logf("correlation by range %.3f, split %.3f", leaky, clean)
	require.Greater(t, leaky, 0.1)
	// Some 40 tickers × 15 blocks × 3 independent labels.
	require.Less(t, math.Abs(clean), 0.1)
}

func abs(v int) int { return max(v, -v) }
