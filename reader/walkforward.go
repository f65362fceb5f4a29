package reader

import (
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Period is a length of time: months, or a duration, or a number of distinct anchor times; one of the three.
type Period struct {
	Months   int
	Duration time.Duration
	Times    int
}

// maxMonths is ten thousand years, and more than a calendar has.
const maxMonths = 12 * 10_000

var periodText = regexp.MustCompile(`^(\d{1,9})(h|d|w|mo|y)?$`)

// ParsePeriod parses `1mo`, `5y`, `36h`, `10d`, `2w`, or a number of distinct anchor times, `20`.
func ParsePeriod(s string) (Period, error) {
	m := periodText.FindStringSubmatch(s)
	if m == nil {
		return Period{}, badQuery("period %q; write 1mo, 5y, 10d, 2w, 36h, or a number of times such as 20", s)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // nine digits
	unit := map[string]int64{"h": 1, "d": 24, "w": 168, "mo": 1, "y": 12}[m[2]]
	switch m[2] {
	case "":
		return Period{Times: int(n)}, nil
	case "mo", "y":
		if n*unit > maxMonths {
			return Period{}, badQuery("period %q is longer than 10000 years", s)
		}
		return Period{Months: int(n * unit)}, nil
	}
	if n*unit > math.MaxInt64/int64(time.Hour) {
		return Period{}, badQuery("period %q is longer than 292 years; write it in years", s)
	}
	return Period{Duration: time.Duration(n*unit) * time.Hour}, nil
}

func (p Period) zero() bool { return p == Period{} }

func (p Period) check(name string) error {
	kinds := 0
	for _, set := range []bool{p.Months != 0, p.Duration != 0, p.Times != 0} {
		if set {
			kinds++
		}
	}
	if kinds > 1 || p.Months < 0 || p.Months > maxMonths || p.Duration < 0 || p.Times < 0 {
		return badQuery("%s of %d months, %s and %d times; must be one of the three, not negative, at most %d months",
			name, p.Months, p.Duration, p.Times, maxMonths)
	}
	return nil
}

// WalkForward says how anchor times are cut into folds: spec/SPLITS.md section 3.
type WalkForward struct {
	Every, Train, Valid Period    // Train zero: all that is before; Valid zero: none
	Start               time.Time // of the first test range; zero: after one Train and Valid, which must not be zero then
	Embargo             time.Duration
	EmbargoTimes        int
	Reach               *Reach
}

// Fold is one step of walking forward: its ranges, and the windows in them. Without Valid that range is zero.
type Fold struct {
	Train, Valid, Test TimeRange
	Parts              Parts
}

// WalkForward divides the windows into consecutive folds, in order of time: each is a [Windows.Split] of its own. Test
// ranges tile the anchors from the start on; folds without a test window are left out, so there are never more than
// distinct anchor times.
func (w *Windows) WalkForward(f WalkForward) ([]Fold, error) {
	if f.Every.zero() {
		return nil, badQuery("walking forward needs Every, such as one month")
	}
	for _, p := range []struct {
		name   string
		period Period
	}{{"Every", f.Every}, {"Train", f.Train}, {"Valid", f.Valid}} {
		if err := p.period.check(p.name); err != nil {
			return nil, err
		}
		if !p.period.zero() && (p.period.Times > 0) != (f.Every.Times > 0) {
			return nil, badQuery("Every, Train and Valid must all be times of the calendar or all numbers of times")
		}
	}
	if f.Start.IsZero() && f.Train.zero() {
		return nil, badQuery("without Train the first test range needs a Start")
	}
	var folds []Fold
	err := w.withSplitter(f.Embargo, f.EmbargoTimes, f.Reach, func(d *splitter) error {
		times, err := w.anchorTimes()
		if err != nil || len(times) == 0 {
			return err
		}
		var ranges [][splits][]interval
		if f.Every.Times > 0 {
			folds, ranges = w.s.foldsByTimes(&f, times)
		} else if folds, ranges, err = w.s.foldsByCalendar(&f, times); err != nil {
			return err
		}
		for i := range folds {
			if folds[i].Parts, err = d.split(ranges[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return folds, nil
}

// foldsByTimes counts distinct anchor times.
func (s *Store) foldsByTimes(f *WalkForward, times []int64) (folds []Fold, ranges [][splits][]interval) {
	unit, n := s.meta.Schema.Unit, len(times)
	every, before, training := min(f.Every.Times, n), min(f.Valid.Times, n), min(f.Train.Times, n)
	first := training + before
	if !f.Start.IsZero() {
		v, _ := unit.Ceil(f.Start)
		first, _ = slices.BinarySearch(times, v)
	}
	at := func(i int) time.Time {
		switch {
		case i < n:
			return unit.Time(times[i])
		case times[n-1] == math.MaxInt64:
			return time.Time{}
		}
		return unit.Time(times[n-1] + 1)
	}
	// between are the times from number i to before number j.
	between := func(i, j int) []interval {
		if i == j {
			return nil
		}
		return []interval{{times[i], times[j-1]}}
	}
	for i := first; i < n; i += every {
		to, v := min(i+every, n), max(i-before, 0)
		t := 0
		if training > 0 {
			t = max(v-training, 0)
		}
		fold := Fold{Train: TimeRange{at(t), at(v)}, Test: TimeRange{at(i), at(to)}}
		if training == 0 {
			fold.Train.From = time.Time{}
		}
		if before > 0 {
			fold.Valid = TimeRange{at(v), at(i)}
		}
		folds = append(folds, fold)
		ranges = append(ranges, [splits][]interval{inTest: between(i, to), inValid: between(v, i), inTrain: between(t, v)})
	}
	return folds, ranges
}

// foldsByCalendar adds months or durations.
func (s *Store) foldsByCalendar(f *WalkForward, times []int64) (folds []Fold, ranges [][splits][]interval, err error) {
	unit := s.meta.Schema.Unit
	zone := time.UTC
	if name := s.meta.Schema.Zone; name != "" {
		if zone, err = time.LoadLocation(name); err != nil {
			return nil, nil, fmt.Errorf("%s: the file's zone %q is not known on this machine: %w; walk by numbers of times", s.path, name, err)
		}
	}
	start := f.Start
	begin, _ := unit.Ceil(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	behind, exists := unit.Ceil(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) // not in units of nanoseconds
	if y := start.Year(); times[0] < begin || exists && times[len(times)-1] >= behind || y < 1 || y > 9999 {
		return nil, nil, badQuery("walking by the calendar is for the years 1 to 9998; walk by numbers of times")
	}
	if start.IsZero() {
		start = shift(shift(unit.Time(times[0]), zone, f.Train, 1), zone, f.Valid, 1)
	}
	first, _ := unit.Ceil(start)
	i, _ := slices.BinarySearch(times, first)
	for i < len(times) {
		fold := Fold{Test: tile(unit.Time(times[i]), start, zone, f.Every)}
		before := fold.Test.From
		if !f.Valid.zero() {
			before = shift(before, zone, f.Valid, -1)
			fold.Valid = TimeRange{before, fold.Test.From}
		}
		fold.Train.To = before
		if !f.Train.zero() {
			fold.Train.From = shift(before, zone, f.Train, -1)
		}
		for _, end := range []struct {
			of Period
			at time.Time
		}{{f.Every, fold.Test.From}, {f.Every, fold.Test.To}, {f.Valid, before}, {f.Train, fold.Train.From}} {
			if y := end.at.UTC().Year(); end.of.Months > 0 && (y < 1 || y > 9999) {
				return nil, nil, badQuery("a range of the fold that starts at %s would reach outside the years 1 to 9999", fold.Test.From)
			}
		}
		var r [splits][]interval
		for k, tr := range []TimeRange{inTest: fold.Test, inValid: fold.Valid, inTrain: fold.Train} {
			if v, ok := s.interval(tr); ok && tr != (TimeRange{}) {
				r[k] = []interval{v}
			}
		}
		folds, ranges = append(folds, fold), append(ranges, r)
		for last := r[inTest][0].hi; i < len(times) && times[i] <= last; {
			i++
		}
	}
	return folds, ranges, nil
}

// tile returns [start + i × every, start + (i + 1) × every) that holds t, which is not before start.
func tile(t, start time.Time, zone *time.Location, every Period) TimeRange {
	if every.Months == 0 {
		sec, nano := t.Unix()-start.Unix(), t.Nanosecond()-start.Nanosecond()
		if nano < 0 {
			sec, nano = sec-1, nano+1e9
		}
		hi, lo := bits.Mul64(uint64(sec), 1e9)
		lo, carry := bits.Add64(lo, uint64(nano), 0)
		from := t.Add(-time.Duration(bits.Rem64(hi+carry, lo, uint64(every.Duration))))
		return TimeRange{from, from.Add(every.Duration)}
	}
	month := func(t time.Time) int { y, m, _ := t.In(zone).Date(); return 12*y + int(m) }
	i := (month(t) - month(start)) / every.Months
	for i > 0 && shift(start, zone, every, i).After(t) {
		i--
	}
	for !shift(start, zone, every, i+1).After(t) {
		i++
	}
	return TimeRange{shift(start, zone, every, i), shift(start, zone, every, i+1)}
}

// shift adds n periods at once. Months keep the local time of day and the day of the month, or take its last day.
func shift(t time.Time, zone *time.Location, p Period, n int) time.Time {
	if p.Months == 0 {
		return t.Add(time.Duration(n) * p.Duration)
	}
	local := t.In(zone)
	y, m, d := local.Date()
	first := time.Date(y, m+time.Month(n*p.Months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	wall := time.Date(first.Year(), first.Month(), min(d, last), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	return onClock(wall, zone)
}

// onClock returns the instant at which clocks of the zone show what wall shows in UTC: the first of two, and where there
// is none the one that is later by the gap.
func onClock(wall time.Time, zone *time.Location) time.Time {
	offset := func(t time.Time) time.Duration {
		_, s := t.In(zone).Zone()
		return time.Duration(s) * time.Second
	}
	const around = 26 * time.Hour // more than any offset
	before, after := offset(wall.Add(-around)), offset(wall.Add(around))
	a, b := wall.Add(-before), wall.Add(-after)
	if offset(a) != before && offset(b) == after {
		return b
	}
	return a
}
