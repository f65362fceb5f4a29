package ingest

import (
	"fmt"
	"time"
)

const (
	clocksForward = "does not exist in %s: the clocks went forward over it"
	clocksBack    = "happened twice in %s: the clocks went back over it"
)

// zone converts the times that clocks show somewhere. It is used by one goroutine
// at a time. The zero value is UTC.
type zone struct {
	loc   *time.Location // nil is UTC
	twice string         // Options.AmbiguousTime
	count *int64         // counts the times that happened twice and were decided by it; may be nil

	// Wall seconds for which only this offset applies, from the last look-up.
	from, to, offset int64
}

// localise converts a time that clocks show, given as if it were UTC, to
// nanoseconds since 1970. The reason is "" or what is wrong with it.
func (z *zone) localise(wall, nano int64) (ns int64, reason string) {
	if wall >= z.from && wall < z.to {
		return nanos(wall-z.offset, nano)
	}
	if z.loc == nil || z.loc == time.UTC {
		return nanos(wall, nano)
	}
	// The instants at which clocks show this are less than 26 h from it, read as
	// UTC; the clocks change at most once in the days around.
	const near = 26 * 3600
	offsetAt := func(unix int64) int64 {
		_, off := time.Unix(unix, 0).In(z.loc).Zone()
		return int64(off)
	}
	before, after := offsetAt(wall-near), offsetAt(wall+near)
	isBefore, isAfter := offsetAt(wall-before) == before, offsetAt(wall-after) == after
	switch {
	case before == after && isBefore:
		z.cache(wall, before, near)
		return nanos(wall-before, nano)
	case isBefore && !isAfter:
		return nanos(wall-before, nano)
	case isAfter && !isBefore:
		return nanos(wall-after, nano)
	case !isBefore:
		return 0, fmt.Sprintf(clocksForward, z.loc)
	}
	// The clocks went back, so that the offset before is the larger.
	chosen := before
	switch z.twice {
	case "first":
	case "last":
		chosen = after
	default:
		return 0, fmt.Sprintf(clocksBack, z.loc)
	}
	if z.count != nil {
		*z.count++
	}
	return nanos(wall-chosen, nano)
}

// cache notes how long, around wall, the offset stays the same. Nearer than near to
// a change of the clocks it notes nothing.
func (z *zone) cache(wall, offset, near int64) {
	from, to := time.Unix(wall-offset, 0).In(z.loc).ZoneBounds()
	z.from, z.to, z.offset = wall-1<<40, wall+1<<40, offset
	if !from.IsZero() {
		z.from = from.Unix() + near
	}
	if !to.IsZero() {
		z.to = to.Unix() - near
	}
	if wall < z.from || wall >= z.to {
		z.to = z.from // empty
	}
}
