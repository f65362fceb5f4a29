package writer

import (
	"cmp"
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
func (l *lists) calendars() []int {
	order := make([]int, len(l.all))
	for i := range order {
		order[i] = i
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
	var kept []int
	for _, i := range order {
		li := &l.all[i]
		li.calendar = -1
		for c, k := range kept {
			if entry, ok := l.contains(k, i); ok {
				li.calendar, li.entry = int64(c), entry
				break
			}
		}
		if li.calendar < 0 {
			li.calendar, li.entry = int64(len(kept)), 0
			kept = append(kept, i)
		}
	}
	return kept
}

// contains reports whether list i is a piece of list k, whose first time is not behind its own, and where it starts.
func (l *lists) contains(k, i int) (entry int64, ok bool) {
	outer, inner := &l.all[k], &l.all[i]
	if inner.rows > outer.rows || inner.last > outer.last {
		return 0, false
	}
	switch { // most lists start or end together, which spares the search
	case inner.first == outer.first:
	case inner.last == outer.last:
		entry = outer.rows - inner.rows
	default:
		entry = l.search(k, inner.first)
	}
	if entry+inner.rows > outer.rows || l.at(k, entry) != inner.first || l.at(k, entry+inner.rows-1) != inner.last {
		return 0, false
	}
	a, b := outer.start+8*entry, inner.start
	return entry, string(l.times[a:a+8*inner.rows]) == string(l.times[b:b+8*inner.rows])
}
