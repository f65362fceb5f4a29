package reader

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/index"
)

// TimeRange is a half-open range of times, [From, To). A zero end is open.
type TimeRange struct{ From, To time.Time }

// Reach is how far ahead of its last row a target looks: rows, or a duration behind that row's time; one of the two.
type Reach struct {
	Rows     int64
	Duration time.Duration
}

// Split says how windows are divided: spec/SPLITS.md section 2. Windows are told apart by their anchor times; a window
// whose label interval comes too near to one of a higher split is in none. Test is the highest, then Valid, then Train.
// Durations are rounded up to whole units of the file.
type Split struct {
	Train, Valid, Test []TimeRange
	// Embargo widens label intervals on both sides, by a duration or by a number of the store's distinct times; at most
	// one of the two.
	Embargo      time.Duration
	EmbargoTimes int
	// Reach replaces the reach that the schema declares for the targets; nil: as declared.
	Reach *Reach
}

// Parts are the windows of each split, each numbered from 0.
type Parts struct{ Train, Valid, Test *Windows }

// Between returns the windows whose anchor time is in [from, to), numbered from 0; a zero end is open. The phase of the
// stride is kept.
func (w *Windows) Between(from, to time.Time) (out *Windows, err error) {
	ranges, err := w.s.ranges(named{"between", []TimeRange{{from, to}}})
	if err != nil {
		return nil, err
	}
	err = w.s.withTimes(func(times func(int) []int64) (err error) {
		out, err = w.filter(w.within(ranges[0], times))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Split divides the windows without leakage. Time and memory are those of runs and, where windows don't overlap, of
// their label intervals. Ranges that overlap, and targets of which nobody said how far they look ahead, are errors that
// match ErrQuery.
func (w *Windows) Split(sp Split) (parts Parts, err error) {
	ranges, err := w.s.ranges(named{"test", sp.Test}, named{"valid", sp.Valid}, named{"train", sp.Train})
	if err != nil {
		return Parts{}, err
	}
	err = w.withSplitter(sp.Embargo, sp.EmbargoTimes, sp.Reach, func(d *splitter) (err error) {
		parts, err = d.split([splits][]interval(ranges))
		return err
	})
	if err != nil {
		return Parts{}, err
	}
	return parts, nil
}

// The splits in order of priority.
const (
	inTest = iota
	inValid
	inTrain
	splits
)

// interval is a closed interval of times in units of the file.
type interval struct{ lo, hi int64 }

// named are ranges and what they are called in errors.
type named struct {
	name   string
	ranges []TimeRange
}

// ranges turns each set of ranges into ascending intervals, without the empty ones. Overlap, of one set or of several,
// is an error.
func (s *Store) ranges(sets ...named) ([][]interval, error) {
	type owned struct {
		interval
		name string
	}
	out := make([][]interval, len(sets))
	var all []owned
	for k, set := range sets {
		for _, r := range set.ranges {
			v, ok := s.interval(r)
			if !ok && !r.From.IsZero() && !r.To.IsZero() && r.To.Before(r.From) {
				return nil, badQuery("%s: the range from %s to %s ends before it begins", set.name, r.From, r.To)
			}
			if ok {
				out[k] = append(out[k], v)
				all = append(all, owned{v, set.name})
			}
		}
		slices.SortFunc(out[k], byStart)
	}
	slices.SortFunc(all, func(a, b owned) int { return byStart(a.interval, b.interval) })
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; b.lo <= a.hi {
			return nil, badQuery("a range of %s and one of %s overlap at %s", a.name, b.name, s.meta.Schema.Unit.Time(b.lo))
		}
	}
	return out, nil
}

func byStart(a, b interval) int { return cmp.Compare(a.lo, b.lo) }

// interval returns the times of the file that a range holds, and whether there can be any.
func (s *Store) interval(r TimeRange) (v interval, ok bool) {
	unit := s.meta.Schema.Unit
	v = interval{math.MinInt64, math.MaxInt64}
	if !r.From.IsZero() {
		from, exact := unit.Ceil(r.From)
		if from == math.MaxInt64 && !exact { // behind all times
			return v, false
		}
		v.lo = from
	}
	if !r.To.IsZero() {
		to, exact := unit.Ceil(r.To)
		switch {
		case to == math.MinInt64:
			return v, false
		case to < math.MaxInt64 || exact:
			v.hi = to - 1
		}
	}
	return v, v.lo <= v.hi
}

// withTimes calls f with a function for the times of a ticker, under a lease and a guard.
func (s *Store) withTimes(f func(times func(ticker int) []int64) error) error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	return s.guard(func() error {
		var failed error
		err := f(s.timesReader(&failed))
		return cmp.Or(failed, err)
	})
}

// filter numbers the runs that are left.
func (w *Windows) filter(runs iter.Seq[index.Run]) (*Windows, error) {
	ix, err := index.FromRuns(runs)
	if err != nil {
		return nil, err
	}
	v := *w
	v.ix = ix
	return &v, nil
}

// within yields the parts of the windows' runs whose anchor times lie in the ranges. It ends early if times can't be
// read, which withTimes reports.
func (w *Windows) within(ranges []interval, times func(int) []int64) iter.Seq[index.Run] {
	return func(yield func(index.Run) bool) {
		for r := range w.ix.Runs() {
			have := times(r.Ticker)
			if len(have) == 0 {
				return
			}
			for _, v := range ranges {
				from, _ := slices.BinarySearch(have, v.lo)
				to, found := slices.BinarySearch(have, v.hi)
				if found {
					to++
				}
				if part := r.Clip(int64(from), int64(to)); part.Count > 0 && !yield(part) {
					return
				}
			}
		}
	}
}

// splitter divides windows by ranges. It is prepared once for all the folds of a walk.
type splitter struct {
	w     *Windows
	times func(ticker int) []int64
	label *labels
	widen func(interval) interval
}

func (w *Windows) withSplitter(embargo time.Duration, embargoTimes int, reach *Reach, f func(*splitter) error) error {
	label, err := w.labels(reach)
	if err != nil {
		return err
	}
	if embargo < 0 || embargoTimes < 0 || embargo > 0 && embargoTimes > 0 {
		return badQuery("an embargo of %s and %d times; must be one of the two, not negative", embargo, embargoTimes)
	}
	return w.s.withTimes(func(times func(int) []int64) error {
		label.read = times
		widen, err := w.s.embargo(embargo, embargoTimes)
		if err != nil {
			return err
		}
		return f(&splitter{w, times, label, widen})
	})
}

// embargo returns the function that widens an interval by a duration or a number of distinct times.
func (s *Store) embargo(duration time.Duration, n int) (func(interval) interval, error) {
	if n == 0 {
		d := s.units(duration)
		return func(v interval) interval { return interval{addTime(v.lo, -d), addTime(v.hi, d)} }, nil
	}
	all, err := s.distinctTimes()
	if err != nil {
		return nil, err
	}
	n = min(n, len(all))
	return func(v interval) interval {
		i, _ := slices.BinarySearch(all, v.lo)
		j := sort.Search(len(all), func(k int) bool { return all[k] > v.hi })
		return interval{min(v.lo, all[max(0, i-n)]), max(v.hi, all[min(len(all), j+n)-1])}
	}, nil
}

// split divides the windows by the ranges of each split, which are ascending and don't overlap.
func (d *splitter) split(ranges [splits][]interval) (Parts, error) {
	var parts [splits]*Windows
	var higher union
	for k := range parts {
		var failed error
		part, err := d.w.filter(func(yield func(index.Run) bool) {
			for r := range d.w.within(ranges[k], d.times) {
				if failed = d.label.of(r.Ticker); failed != nil || !d.survivors(higher.list, r, yield) {
					return
				}
			}
		})
		if err := errors.Join(failed, err); err != nil {
			return Parts{}, err
		}
		if parts[k] = part; k == inTrain {
			break
		}
		for r := range part.ix.Runs() {
			if err := d.label.of(r.Ticker); err != nil {
				return Parts{}, err
			}
			d.label.addTo(&higher, &r)
		}
		higher.compact()
	}
	return Parts{Test: parts[inTest], Valid: parts[inValid], Train: parts[inTrain]}, nil
}

// survivors yields the parts of a run whose widened label intervals share no instant with the higher ones, and reports
// whether to go on. Label intervals move forward with the anchor, so that the end of each part is searched for; with
// label ends in a column only their beginnings do, and each window is looked at.
func (d *splitter) survivors(higher []interval, r index.Run, yield func(index.Run) bool) bool {
	at := func(k int64) interval { return d.widen(d.label.at(r.Anchor(k))) }
	// next returns the first window behind k for which passed holds, or the one behind k.
	next := func(k int64, passed func(interval) bool) int64 {
		if k++; len(d.label.ends) > 0 {
			return k
		}
		return k + int64(sort.Search(int(r.Count-k), func(i int) bool { return passed(at(k + int64(i))) }))
	}
	for k := int64(0); k < r.Count; {
		v := at(k)
		i := sort.Search(len(higher), func(i int) bool { return higher[i].hi >= v.lo })
		if i == len(higher) { // all of them end before this window begins, and so before the later ones do
			return yield(r.Slice(k, r.Count))
		}
		other := higher[i]
		if other.lo <= v.hi {
			k = next(k, func(v interval) bool { return v.lo > other.hi })
			continue
		}
		to := next(k, func(v interval) bool { return v.hi >= other.lo })
		if !yield(r.Slice(k, to)) {
			return false
		}
		k = to
	}
	return true
}

// labels gives the label intervals of windows: spec/SPLITS.md section 1.
type labels struct {
	s             *Store
	behind, ahead int64        // rows from the anchor to the first and last row
	rows          int64        // greatest reach in rows, at least 0
	duration      int64        // greatest reach as a duration in units, at least 0
	groups        []int        // of label ends
	targets       []format.Run // target rows from the anchor on, ascending, disjoint

	read  func(ticker int) []int64
	times []int64 // of the current ticker
	ends  [][]int64
	have  int // the current ticker
}

func (w *Windows) labels(reach *Reach) (*labels, error) {
	l := &labels{s: w.s, have: -1}
	if reach != nil && (reach.Rows < 0 || reach.Duration < 0 || reach.Rows > 0 && reach.Duration > 0) {
		return nil, badQuery("a reach of %d rows and %s; must be one of the two, not negative", reach.Rows, reach.Duration)
	}
	if len(w.targets.pieces) == 0 {
		return l, nil
	}
	for _, h := range w.query.Horizons {
		r := format.Run{From: int64(h), To: int64(h) + int64(w.query.TargetLength)}
		if n := len(l.targets); n > 0 && r.From <= l.targets[n-1].To {
			l.targets[n-1].To = r.To
			continue
		}
		l.targets = append(l.targets, r)
	}
	least := l.targets[0].From
	l.behind, l.ahead = min(0, least), max(0, l.targets[len(l.targets)-1].To-1)
	if reach != nil {
		l.rows, l.duration = reach.Rows, w.s.units(reach.Duration)
		return l, nil
	}
	for _, name := range w.targets.layout.Names {
		p := w.s.places[w.s.column[name]]
		c := &w.s.meta.Schema.Groups[p.Group].Columns[p.Column]
		switch c.ReachKind {
		case format.ReachRows:
			l.rows = max(l.rows, c.Reach)
		case format.ReachDuration:
			l.duration = max(l.duration, c.Reach)
		case format.ReachColumn:
			if g := w.s.places[c.Reach].Group; !slices.Contains(l.groups, g) {
				l.groups = append(l.groups, g)
			}
		default:
			if least <= 0 {
				return nil, badQuery("horizon %d and no declared reach of target %q: how far ahead of its row was it computed? "+
					"Give the split a Reach, 0 if it does not look ahead, or convert with --target %s:REACH", least, name, name)
			}
		}
	}
	return l, nil
}

// of makes a ticker the current one.
func (l *labels) of(ticker int) error {
	if ticker == l.have {
		return nil
	}
	l.have, l.times, l.ends = ticker, l.read(ticker), l.ends[:0]
	for _, g := range l.groups {
		v, err := l.s.int64s(l.s.offset(ticker, g, 0), l.s.Rows(ticker))
		if err != nil {
			return err
		}
		l.ends = append(l.ends, v)
	}
	return nil
}

// at returns the label interval of anchor a of the current ticker.
func (l *labels) at(a int64) interval {
	e := int64(len(l.times)) - 1
	last := min(e, a+l.ahead)
	v := interval{l.times[a+l.behind], max(l.times[min(e, addTime(last, l.rows))], addTime(l.times[last], l.duration))}
	for _, ends := range l.ends {
		for _, r := range l.targets {
			v.hi = max(v.hi, slices.Max(ends[a+r.From:a+r.To])) // format.NoTime is the least
		}
	}
	return v
}

// addTo adds the label intervals of a run of the current ticker's windows. If neighbours share an instant they are one
// interval, from the first one's beginning to the last one's end.
func (l *labels) addTo(u *union, r *index.Run) {
	if len(l.ends) == 0 && r.Step+l.behind <= l.ahead {
		u.insert(interval{l.at(r.First).lo, l.at(r.Anchor(r.Count - 1)).hi})
		return
	}
	for k := range r.Count {
		u.insert(l.at(r.Anchor(k)))
	}
}

// compactAt is the number of entries up to which a union or a set of times may repeat itself.
const compactAt = 1 << 20

// union is a union of closed intervals. After compact the list is ascending and disjoint.
type union struct {
	list  []interval
	limit int
}

func (u *union) insert(v interval) {
	if n := len(u.list); n > 0 && u.list[n-1].lo <= v.lo && v.lo <= u.list[n-1].hi {
		u.list[n-1].hi = max(u.list[n-1].hi, v.hi)
		return
	}
	if u.list = append(u.list, v); len(u.list) > u.limit {
		u.compact()
		u.limit = 2*len(u.list) + compactAt
	}
}

func (u *union) compact() {
	slices.SortFunc(u.list, byStart)
	out := u.list[:0]
	for _, v := range u.list {
		if n := len(out); n > 0 && v.lo <= out[n-1].hi {
			out[n-1].hi = max(out[n-1].hi, v.hi)
			continue
		}
		out = append(out, v)
	}
	u.list = out
}

// timeSet is a set of times. After compact the list is ascending.
type timeSet struct {
	list  []int64
	limit int
}

func (s *timeSet) insert(times ...int64) {
	if s.list = append(s.list, times...); len(s.list) > s.limit {
		s.compact()
		s.limit = 2*len(s.list) + compactAt
	}
}

func (s *timeSet) compact() {
	slices.Sort(s.list)
	s.list = slices.Compact(s.list)
}

// distinctTimes returns all times of the store's calendars, ascending.
func (s *Store) distinctTimes() ([]int64, error) {
	var all timeSet
	for i, off := range s.meta.Calendars.Offset {
		v, err := s.int64s(off, s.meta.Calendars.Entries[i])
		if err != nil {
			return nil, err
		}
		all.insert(v...)
	}
	all.compact()
	return all.list, nil
}

// units returns a duration in units of the file, rounded up.
func (s *Store) units(d time.Duration) int64 {
	u := s.meta.Schema.Unit.Duration()
	n := int64(d / u)
	if d%u > 0 {
		n++
	}
	return n
}

// addTime adds and saturates.
func addTime(t, d int64) int64 {
	switch v := t + d; {
	case d > 0 && v < t:
		return math.MaxInt64
	case d < 0 && v > t:
		return math.MinInt64
	default:
		return v
	}
}
