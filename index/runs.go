package index

import "iter"

// FromRuns numbers given runs, which must come in ascending order of ticker and anchor, without overlap: what a filter
// leaves of [Windows.Runs]. Steps are at least 1 and below 2^32. Runs that continue each other become one.
func FromRuns(runs iter.Seq[Run]) (*Windows, error) {
	var b builder
	last := -1
	for r := range runs {
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
	lo := min(max(0, (from-r.First+r.Step-1)/r.Step), r.Count)
	hi := min(max(lo, (to-r.First+r.Step-1)/r.Step), r.Count)
	if from <= r.First {
		lo = 0
	}
	if to <= r.First {
		hi = lo
	}
	return r.Slice(lo, hi)
}

// Slice returns the part of a run with the anchors [from, to).
func (r *Run) Slice(from, to int64) Run { return Run{r.Ticker, r.Anchor(from), to - from, r.Step} }
