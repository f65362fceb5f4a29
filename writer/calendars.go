package writer

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sort"
)

// list is a distinct list of times, in the spool of times.
type list struct {
	start       int64 // byte in the spool
	rows        int64
	first, last int64 // times
	hash        uint64
	sums        []byte // of its chunks
	calendar    int64  // number of the calendar that contains it
	entry       int64  // its first entry there
}

// lists gives access to the times of distinct lists.
type lists struct {
	all   []list
	times []byte // the spool's bytes
}

func (l *lists) at(i int, entry int64) int64 {
	return int64(binary.LittleEndian.Uint64(l.times[l.all[i].start+8*entry:]))
}

// search returns the least entry of list i whose time is not before t.
func (l *lists) search(i int, t int64) int64 {
	return int64(sort.Search(int(l.all[i].rows), func(k int) bool { return l.at(i, int64(k)) >= t }))
}

// calendars chooses the lists that become calendars, in their order, and sets where each list is found: SPEC section 6.
func (l *lists) calendars(ctx context.Context) ([]int, error) {
	order := make([]int, len(l.all))
	firsts := make(map[int64]struct{})
	for i := range order {
		order[i] = i
		firsts[l.all[i].first] = struct{}{}
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &l.all[a], &l.all[b]
		switch {
		case x.first != y.first:
			return cmp.Compare(x.first, y.first)
		case x.rows != y.rows:
			return cmp.Compare(y.rows, x.rows)
		}
		for k := int64(0); k < x.rows; k++ {
			if c := cmp.Compare(l.at(a, k), l.at(b, k)); c != 0 {
				return c
			}
		}
		return 0
	})
	// A list can only be a piece of a calendar that has its first time. Calendars that are short beside the number of
	// different first times are noted under those that they have; the others are searched.
	short := max(64, int64(len(firsts)/16))
	var kept, long []int // long: calendars that are searched and don't end before the current first time
	noted := make(map[int64][]place)
	for n, i := range order {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		li := &l.all[i]
		if n > 0 && li.first != l.all[order[n-1]].first {
			delete(noted, l.all[order[n-1]].first)
			long = slices.DeleteFunc(long, func(c int) bool { return l.all[kept[c]].last < li.first })
		}
		at := place{calendar: len(kept)}
		for _, c := range long {
			if entry, ok := l.find(kept[c], i); ok && l.contains(kept[c], entry, i) {
				at = place{c, entry}
				break
			}
		}
		for _, p := range noted[li.first] {
			if p.calendar >= at.calendar {
				break
			}
			if l.contains(kept[p.calendar], p.entry, i) {
				at = p
				break
			}
		}
		li.calendar, li.entry = int64(at.calendar), at.entry
		if at.calendar < len(kept) {
			continue
		}
		kept = append(kept, i)
		if li.rows > short {
			long = append(long, at.calendar)
			continue
		}
		for k := range li.rows {
			t := l.at(i, k)
			if _, ok := firsts[t]; ok {
				noted[t] = append(noted[t], place{at.calendar, k})
			}
		}
	}
	return kept, nil
}

// place is an entry of a calendar.
type place struct {
	calendar int
	entry    int64
}

// find returns the entry of list k at which list i, whose first time is not before k's, would have to start.
func (l *lists) find(k, i int) (entry int64, ok bool) {
	outer, inner := &l.all[k], &l.all[i]
	switch { // most lists start or end together, which spares the search
	case inner.rows > outer.rows || inner.last > outer.last:
		return 0, false
	case inner.first == outer.first:
		return 0, true
	case inner.last == outer.last:
		return outer.rows - inner.rows, true
	}
	return l.search(k, inner.first), true
}

// contains reports whether list i is the piece of list k that starts at the given entry.
func (l *lists) contains(k int, entry int64, i int) bool {
	outer, inner := &l.all[k], &l.all[i]
	if entry+inner.rows > outer.rows || l.at(k, entry) != inner.first || l.at(k, entry+inner.rows-1) != inner.last {
		return false
	}
	a, b := outer.start+8*entry, inner.start
	return string(l.times[a:a+8*inner.rows]) == string(l.times[b:b+8*inner.rows])
}
