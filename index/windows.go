package index

import (
	"fmt"
	"iter"
	"sort"
)

// Run is an arithmetic progression of anchors: First, First + Step, … , Count of them, of one ticker.
type Run struct {
	Ticker             int
	First, Count, Step int64
}

// Windows numbers the windows of a query from 0, in ticker order, then by anchor. It is immutable and safe for
// concurrent use.
type Windows struct {
	runs    []run
	buckets []uint32 // the run of the first number of each bucket of 2^shift numbers
	shift   uint8
	n       int
}

// run is one run as Locate needs it: a hit reads one bucket and one run.
type run struct {
	end    int64 // behind the number of its last window; its first is the end of the run before, or 0
	base   int64 // the anchor of window i is base + i × step, modulo 2^64
	step   uint32
	ticker uint32
}

const (
	runBytes      = 24
	bucketBytes   = 4
	bucketsPerRun = 2 // at most; more find runs no faster once the table leaves the cache
)

func (r *run) anchor(i int64) int64 { return r.base + i*int64(r.step) }

// newWindows copies runs, which have grown with room to spare, and builds the buckets.
func newWindows(runs []run) *Windows {
	w := &Windows{runs: make([]run, len(runs))}
	copy(w.runs, runs)
	if len(runs) == 0 {
		return w
	}
	last := runs[len(runs)-1].end - 1
	w.n = int(last + 1)
	for last>>w.shift >= int64(len(runs))*bucketsPerRun {
		w.shift++
	}
	w.buckets = make([]uint32, last>>w.shift+1)
	r := 0
	for b := range w.buckets {
		for runs[r].end <= int64(b)<<w.shift {
			r++
		}
		w.buckets[b] = uint32(r)
	}
	return w
}

// Len returns the number of windows.
func (w *Windows) Len() int { return w.n }

// Locate returns the ticker and the anchor row of window i. It panics if i is not in [0, Len), as indexing a slice
// does. It takes expected constant time over uniformly drawn i, at worst O(log runs), and does not allocate.
func (w *Windows) Locate(i int) (ticker int, anchor int64) {
	if uint(i) >= uint(w.n) {
		panicRange(i, w.n)
	}
	k := uint64(w.buckets[uint64(i)>>(w.shift&63)])
	// One run further if i is behind run k, without a branch that the processor would guess wrong too often.
	k += uint64(w.runs[k].end-1-int64(i)) >> 63
	r := &w.runs[k]
	if int64(i) >= r.end {
		r = w.search(i)
	}
	return int(r.ticker), r.anchor(int64(i))
}

func panicRange(i, n int) {
	panic(fmt.Sprintf("index: window %d is out of range with %d windows", i, n))
}

// search returns the run of i, which lies behind the first two runs of its bucket.
func (w *Windows) search(i int) *run {
	b := i >> w.shift
	lo, hi := int(w.buckets[b])+2, len(w.runs)-1
	if b+1 < len(w.buckets) {
		hi = int(w.buckets[b+1])
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if w.runs[mid].end <= int64(i) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return &w.runs[lo]
}

// Number returns the number of the window of a ticker that has the given anchor row, and whether there is one:
// O(log runs). It is the inverse of Locate.
func (w *Windows) Number(ticker int, anchor int64) (i int, ok bool) {
	// The first run whose last anchor is not before the anchor sought.
	k := sort.Search(len(w.runs), func(k int) bool {
		r := &w.runs[k]
		return int(r.ticker) > ticker || int(r.ticker) == ticker && r.anchor(r.end-1) >= anchor
	})
	if k == len(w.runs) || int(w.runs[k].ticker) != ticker {
		return 0, false
	}
	r, start := &w.runs[k], w.start(k)
	d := anchor - r.anchor(start)
	if d < 0 || d%int64(r.step) != 0 {
		return 0, false
	}
	return int(start + d/int64(r.step)), true
}

// Range returns the numbers [from, to) of a ticker's windows, which are empty for a ticker that has none or does
// not exist: O(log runs).
func (w *Windows) Range(ticker int) (from, to int) {
	behind := func(t int) int {
		k := sort.Search(len(w.runs), func(k int) bool { return int(w.runs[k].ticker) >= t })
		return int(w.start(k))
	}
	return behind(ticker), behind(ticker + 1)
}

// Runs yields the runs in order of their windows' numbers. A run of one anchor has step 1. Anchors are joined into
// runs as they come, whatever lies between them: one may reach over breaks and missing cells, and two anchors that
// stand alone make one of any step.
func (w *Windows) Runs() iter.Seq[Run] {
	return func(yield func(Run) bool) {
		start := int64(0)
		for k := range w.runs {
			r := &w.runs[k]
			if !yield(Run{int(r.ticker), r.anchor(start), r.end - start, int64(r.step)}) {
				return
			}
			start = r.end
		}
	}
}

// Bytes returns the memory that the numbering takes: 24 bytes a run, and at most 8 for its buckets.
func (w *Windows) Bytes() int { return runBytes*len(w.runs) + bucketBytes*len(w.buckets) }

// start returns the number of run k's first window; that of the run behind the last is Len.
func (w *Windows) start(k int) int64 {
	if k == 0 {
		return 0
	}
	return w.runs[k-1].end
}
