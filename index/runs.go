package index

import (
	"fmt"
	"iter"
	"math"
)

// FromRuns numbers given runs, which must come in ascending order of ticker and anchor, without overlap: what a filter
// leaves of [Windows.Runs]. Steps are at least 1 and below 2^32; runs of no anchors are left out. Runs that continue each
// other become one.
func FromRuns(runs iter.Seq[Run]) (*Windows, error) {
	var b builder
	last := -1
	for r := range runs {
		if r.Ticker < last || r.First < 0 || r.Count < 0 || r.Step < 1 || r.Step > math.MaxUint32 {
			return nil, fmt.Errorf("index: run %+v behind ticker %d", r, last)
		}
		if r.Ticker != last {
			b.first, last = len(b.runs), r.Ticker
		}
		if r.Count == 0 {
			continue
		}
		if err := b.add(r.Ticker, r.First, r.Count, r.Step); err != nil {
			return nil, err
		}
	}
	return newWindows(b.runs), nil
}

// Anchor returns the k-th anchor of a run.
func (r *Run) Anchor(k int64) int64 { return r.First + k*r.Step }

// Clip returns the part of a run whose anchors lie in rows [from, to).
func (r *Run) Clip(from, to int64) Run {
	behind := func(row int64) int64 { // the number of anchors before a row
		return min(max(0, (row-r.First+r.Step-1)/r.Step), r.Count)
	}
	lo := behind(from)
	return r.Slice(lo, max(lo, behind(to)))
}

// Slice returns the part of a run with the anchors [from, to).
func (r *Run) Slice(from, to int64) Run { return Run{r.Ticker, r.Anchor(from), to - from, r.Step} }
