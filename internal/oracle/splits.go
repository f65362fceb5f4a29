package oracle

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"
)

// Reach says how far ahead of its row a column was computed.
type Reach struct {
	Kind   ReachKind
	Amount int64 // rows, time units, or the number of a column of label ends
}

// ReachKind is a kind of reach.
type ReachKind string

// The kinds of reach. ReachNone is none declared.
const (
	ReachNone     ReachKind = ""
	ReachRows     ReachKind = "rows"
	ReachDuration ReachKind = "duration"
	ReachColumn   ReachKind = "column"
)

// Range is a half-open range of times; a nil end is open.
type Range struct{ From, To *int64 }

// Holds reports whether a time is in the range.
func (r Range) Holds(t int64) bool {
	return (r.From == nil || *r.From <= t) && (r.To == nil || t < *r.To)
}

// Splits says how windows are divided, as SPLITS.md section 2 has it. Ranges are taken as valid.
type Splits struct {
	Train, Valid, Test []Range
	Embargo            int64 // time units
	EmbargoTimes       int   // distinct times of the store
	Reach              *Reach
}

// Parts are the surviving windows of each split.
type Parts struct{ Train, Valid, Test []Window }

// Split divides the windows of a query one by one: each is compared with every surviving window of the higher splits. reaches
// has one for each column.
func Split(p *Panel, q Query, reaches []Reach, s Splits) (Parts, error) {
	r, err := Resolve(p, q)
	if err != nil {
		return Parts{}, err
	}
	windows, err := Windows(p, q)
	if err != nil {
		return Parts{}, err
	}
	if s.Reach == nil && len(r.Targets) > 0 && r.Horizons[0] <= 0 {
		for _, c := range r.Targets {
			if reaches[c].Kind == ReachNone {
				return Parts{}, fmt.Errorf("horizon %d and column %d has no reach", r.Horizons[0], c)
			}
		}
	}
	type judged struct {
		Window
		lo, hi int64
	}
	distinct := p.DistinctTimes()
	var surviving []judged // of the higher splits
	of := func(ranges []Range) (kept []Window) {
		var mine []judged
		for _, w := range windows {
			if !slices.ContainsFunc(ranges, func(r Range) bool { return r.Holds(w.Time) }) {
				continue
			}
			lo, hi := LabelInterval(p, r, reaches, s.Reach, w)
			from, to := widen(distinct, s, lo, hi)
			meets := slices.ContainsFunc(surviving, func(o judged) bool { return from <= o.hi && o.lo <= to })
			if !meets {
				mine, kept = append(mine, judged{w, lo, hi}), append(kept, w)
			}
		}
		surviving = append(surviving, mine...)
		return kept
	}
	var parts Parts
	parts.Test = of(s.Test)
	parts.Valid = of(s.Valid)
	parts.Train = of(s.Train)
	return parts, nil
}

// DistinctTimes returns all times of the panel, ascending.
func (p *Panel) DistinctTimes() []int64 {
	var all []int64
	for _, t := range p.Tickers {
		all = append(all, t.Times...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// widen widens an interval by the embargo.
func widen(distinct []int64, s Splits, lo, hi int64) (int64, int64) {
	if s.EmbargoTimes == 0 {
		return plus(lo, -s.Embargo), plus(hi, s.Embargo)
	}
	below, notAbove := 0, 0
	for _, t := range distinct {
		if t < lo {
			below++
		}
		if t <= hi {
			notAbove++
		}
	}
	at := func(i *big.Int) int64 {
		last := big.NewInt(int64(len(distinct) - 1))
		switch {
		case i.Sign() < 0:
			return distinct[0]
		case i.Cmp(last) > 0:
			return distinct[last.Int64()]
		}
		return distinct[i.Int64()]
	}
	k := big.NewInt(int64(s.EmbargoTimes))
	from := at(new(big.Int).Sub(big.NewInt(int64(below)), k))
	to := at(new(big.Int).Add(big.NewInt(int64(notAbove-1)), k))
	return min(lo, from), max(hi, to)
}

// plus adds and saturates.
func plus(t, d int64) int64 {
	sum := new(big.Int).Add(big.NewInt(t), big.NewInt(d))
	switch {
	case sum.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case sum.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return sum.Int64()
}

// LabelInterval returns the label interval of a window, as SPLITS.md section 1 has it.
func LabelInterval(p *Panel, r *Resolved, reaches []Reach, given *Reach, w Window) (lo, hi int64) {
	t := &p.Tickers[w.Ticker]
	if len(r.Targets) == 0 {
		return w.Time, w.Time
	}
	a, e := w.Anchor, int64(len(t.Times)-1)
	first := max(0, a+min(0, slices.Min(r.Horizons)))
	last := a + max(0, slices.Max(r.Horizons)+r.TargetLength-1)
	lo, hi = t.Times[first], t.Times[a]
	for _, c := range r.Targets {
		reach := reaches[c]
		if given != nil {
			reach = *given
		}
		switch reach.Kind {
		case ReachDuration:
			hi = max(hi, plus(t.Times[min(e, last)], reach.Amount))
		case ReachColumn:
			hi = max(hi, t.Times[min(e, last)])
			for _, h := range r.Horizons {
				for row := a + h; row < a+h+r.TargetLength; row++ {
					if end := t.Ends[reach.Amount][row]; end != NoEnd {
						hi = max(hi, end)
					}
				}
			}
		default:
			hi = max(hi, t.Times[min(e, plus(last, reach.Amount))])
		}
	}
	return lo, hi
}

// Period is a length of time: Months, or time Units, or a number of distinct anchor Times.
type Period struct{ Months, Units, Times int64 }

// Walk says how anchor times are cut into folds, as SPLITS.md section 3 has it. Periods that are zero are left out.
type Walk struct {
	Every, Train, Valid Period
	Start               *int64
}

// Fold has the ranges of one fold; Valid is nil if there is none.
type Fold struct {
	Train, Test Range
	Valid       *Range
}

// Folds returns the folds of a walk over ascending distinct anchor times, of which there are some. unit is the length of a
// time unit; zone is that of the months.
func Folds(times []int64, f Walk, unit time.Duration, zone *time.Location) []Fold {
	end := times[len(times)-1] + 1
	var b []int64                                   // the bounds, until one is not below the end
	var before func(i int, periods ...Period) int64 // b[i] less the periods
	if f.Every.Times > 0 {
		s := f.Train.Times + f.Valid.Times
		if f.Start != nil {
			s = 0
			for s < int64(len(times)) && times[s] < *f.Start {
				s++
			}
		}
		at := func(i int64) int64 {
			switch {
			case i < 0:
				return times[0]
			case i >= int64(len(times)):
				return end
			}
			return times[i]
		}
		for i := int64(0); len(b) == 0 || b[len(b)-1] < end; i++ {
			b = append(b, at(s+i*f.Every.Times))
		}
		before = func(i int, periods ...Period) int64 {
			k := s + int64(i)*f.Every.Times
			for _, p := range periods {
				k -= p.Times
			}
			return at(k)
		}
	} else {
		var start int64
		if f.Start != nil {
			start = *f.Start
		} else {
			start = addPeriod(addPeriod(times[0], f.Train, 1, unit, zone), f.Valid, 1, unit, zone)
		}
		for i := int64(0); len(b) == 0 || b[len(b)-1] < end; i++ {
			b = append(b, addPeriod(start, f.Every, i, unit, zone))
		}
		before = func(i int, periods ...Period) int64 {
			t := b[i]
			for _, p := range periods {
				t = addPeriod(t, p, -1, unit, zone)
			}
			return t
		}
	}
	var folds []Fold
	for i := 0; i+1 < len(b); i++ {
		fold := Fold{Test: Range{&b[i], &b[i+1]}}
		if !slices.ContainsFunc(times, fold.Test.Holds) {
			continue
		}
		v := before(i, f.Valid)
		if f.Valid != (Period{}) {
			fold.Valid = &Range{&v, &b[i]}
		}
		fold.Train.To = &v
		if f.Train != (Period{}) {
			from := before(i, f.Valid, f.Train)
			fold.Train.From = &from
		}
		folds = append(folds, fold)
	}
	return folds
}

// addPeriod adds n periods of months or time units at once.
func addPeriod(t int64, p Period, n int64, unit time.Duration, zone *time.Location) int64 {
	if p.Months == 0 {
		return t + n*p.Units
	}
	second := int64(time.Second / unit)
	sec, sub := t/second, t%second
	if sub < 0 {
		sec, sub = sec-1, sub+second
	}
	wall := func(sec int64) time.Time { // what a clock of the zone shows, as if it were UTC
		l := time.Unix(sec, 0).In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
	}
	from := wall(sec)
	to := from
	for month := int64(0); month < max(n, -n)*p.Months; month++ { // month by month, looking at the first of each
		first := time.Date(to.Year(), to.Month(), 1, 0, 0, 0, 0, time.UTC)
		if n > 0 {
			to = first.AddDate(0, 0, 31)
		} else {
			to = first.AddDate(0, 0, -1)
		}
		to = time.Date(to.Year(), to.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	day := from.Day()
	for time.Date(to.Year(), to.Month(), day, 0, 0, 0, 0, time.UTC).Month() != to.Month() {
		day--
	}
	want := time.Date(to.Year(), to.Month(), day, from.Hour(), from.Minute(), from.Second(), 0, time.UTC)
	// The first instant at which the clock shows it, or else by how much the clock jumps over it. Clocks of today's
	// zones differ from UTC by whole quarters of an hour.
	for at := want.Unix() - 30*3600; at < want.Unix()+30*3600; at += 900 {
		switch now := wall(at); {
		case now.Equal(want):
			return at*second + sub
		case now.After(want) && wall(at-900).Before(want):
			gap := now.Sub(wall(at-900)) - 15*time.Minute
			for ; ; at += 900 {
				if wall(at).Equal(want.Add(gap)) {
					return at*second + sub
				}
			}
		}
	}
	panic("oracle: no such time")
}
