package index

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/wstore/wstore/format"
)

// New numbers the windows of a query. It reads p.Index only for what the query names, in time and memory
// O(tickers + stretches + missing runs); runs of targets count once per horizon, unless horizons are at most
// TargetLength apart, and rows of At count too. The result keeps nothing of p and q.
//
// An error says which part of the query is out of range, which list of the index breaks section 5.5 of the
// specification, or that there are more windows than an int counts.
func New(p Panel, q Query) (*Windows, error) {
	if p.Index == nil {
		p.Index = new(format.Index)
	}
	if err := check(&p, &q); err != nil {
		return nil, err
	}
	b := builder{index: p.Index, query: q, spans: spans(q.Horizons, q.TargetLength)}
	if n := len(q.Horizons); n > 0 {
		b.ahead = max(0, q.Horizons[n-1]+q.TargetLength-1)
	}
	if err := b.gather(len(p.Rows)); err != nil {
		return nil, err
	}
	n := len(p.Rows)
	if q.Tickers != nil {
		n = len(q.Tickers)
	}
	for t := range n {
		if q.Tickers != nil {
			t = q.Tickers[t]
		}
		if err := b.ticker(t, p.Rows[t]); err != nil {
			return nil, fmt.Errorf("index: ticker %d: %w", t, err)
		}
	}
	return newWindows(b.runs), nil
}

// builder makes runs, ticker by ticker.
type builder struct {
	index *format.Index
	query Query
	spans []span // what a missing target cell removes
	ahead int64  // rows that a window needs behind its anchor

	breaks, inputs, targets, where lists

	runs  []run
	first int // the run where the current ticker's start

	// Of the current ticker:
	missing, absent union   // anchors that a missing cell removes, and those that where drops
	from, to        int64   // rows that an anchor may have
	at              []int64 // rows of At that are still ahead

	rows   []int64      // reused for the union of break sets
	merged []format.Run // reused for the union of targets
}

// span widens a missing run [u, v) to the anchors [u - before, v + after) whose windows it spoils.
type span struct{ before, after int64 }

// spans returns the spans of target rows, one for all horizons whose removals join for even a single missing row.
func spans(horizons []int64, length int64) []span {
	var s []span
	for i, h := range horizons {
		if i > 0 && h-horizons[i-1] <= length {
			s[len(s)-1].before = h + length - 1
		} else {
			s = append(s, span{before: h + length - 1, after: -h})
		}
	}
	return s
}

// gather collects which lists each ticker has.
func (b *builder) gather(tickers int) (err error) {
	breaks := make([][]format.Use, len(b.query.Breaks))
	for i, set := range b.query.Breaks {
		breaks[i] = b.index.Breaks[set]
	}
	if b.breaks, err = newLists(tickers, len(b.index.BreakLists), breaks); err != nil {
		return fmt.Errorf("index: breaks: %w", err)
	}
	for _, v := range []struct {
		to      *lists
		columns []int
	}{{&b.inputs, b.query.Inputs}, {&b.targets, b.query.Targets}, {&b.where, b.query.Where}} {
		var uses [][]format.Use
		for _, c := range v.columns {
			i, ok := sort.Find(len(b.index.Missing), func(i int) int { return c - b.index.Missing[i].Column })
			if ok {
				uses = append(uses, b.index.Missing[i].Uses)
			}
		}
		if *v.to, err = newLists(tickers, len(b.index.MissingLists), uses); err != nil {
			return fmt.Errorf("index: missing runs: %w", err)
		}
	}
	return nil
}

// ticker appends the runs of a ticker.
func (b *builder) ticker(t int, rows int64) error {
	if rows < 0 || rows > maxRows {
		return fmt.Errorf("%d rows are not in 0 to %d", rows, int64(maxRows))
	}
	b.first = len(b.runs)
	b.from, b.to = 0, rows
	if b.query.Bounds != nil {
		from, to := b.query.Bounds(t)
		b.from, b.to = max(b.from, from), min(b.to, to)
	}
	if b.from >= b.to {
		return nil
	}
	if b.query.At != nil {
		b.at = b.query.At(t)
		for i := 1; i < len(b.at); i++ {
			if b.at[i] <= b.at[i-1] {
				return fmt.Errorf("row %d after %d: rows to take must strictly ascend", b.at[i], b.at[i-1])
			}
		}
	}
	breaks, err := b.breaksOf(t, rows)
	if err != nil {
		return err
	}
	if err := b.missingOf(t, rows); err != nil {
		return err
	}

	// A horizon is at least 1 - lookback, so that target rows never start before the window. A missing run of
	// another stretch removes only anchors that the ends of that stretch have removed.
	start := int64(0)
	for i := 0; i <= len(breaks); i++ {
		end := rows
		if i < len(breaks) {
			end = breaks[i]
		}
		for from, to := range b.missing.outside(start+b.query.Lookback-1, end-b.ahead) {
			if err := b.take(t, from, to); err != nil {
				return err
			}
		}
		start = end
	}
	return nil
}

// breaksOf returns the ascending union of the ticker's counted breaks.
func (b *builder) breaksOf(t int, rows int64) ([]int64, error) {
	numbers := b.breaks.of(t)
	for _, n := range numbers {
		if err := checkBreaks(b.index.BreakLists[n], rows); err != nil {
			return nil, err
		}
	}
	switch len(numbers) {
	case 0:
		return nil, nil
	case 1:
		return b.index.BreakLists[numbers[0]], nil
	}
	b.rows = b.rows[:0]
	for _, n := range numbers {
		b.rows = append(b.rows, b.index.BreakLists[n]...)
	}
	slices.Sort(b.rows)
	b.rows = slices.Compact(b.rows)
	return b.rows, nil
}

// missingOf sets up the unions of what the ticker's missing cells remove.
func (b *builder) missingOf(t int, rows int64) error {
	b.missing.reset()
	b.absent.reset()
	push := func(u *union, numbers []int, s span) error {
		for _, n := range numbers {
			list := b.index.MissingLists[n]
			if err := checkMissing(list, rows); err != nil {
				return err
			}
			u.push(cursor{list, s})
		}
		return nil
	}
	if err := push(&b.missing, b.inputs.of(t), span{0, b.query.Lookback - 1}); err != nil {
		return err
	}
	if err := push(&b.absent, b.where.of(t), span{}); err != nil {
		return err
	}
	targets := b.targets.of(t)
	if len(b.spans) == 1 {
		return push(&b.missing, targets, b.spans[0])
	}
	// Several spans of several lists are united in two steps, so that there are cursors for their sum, not product.
	var u union
	u.reset()
	if err := push(&u, targets, span{}); err != nil {
		return err
	}
	b.merged = b.merged[:0]
	for r := u.next(); r != none; r = u.next() {
		b.merged = append(b.merged, r)
	}
	for _, s := range b.spans {
		b.missing.push(cursor{b.merged, s})
	}
	return nil
}

// take appends what the stride or At, and then the filters, leave of the maximal run [from, to) of valid anchors.
func (b *builder) take(t int, from, to int64) error {
	step := b.query.Stride
	for lo, hi := range b.absent.outside(max(from, b.from), min(to, b.to)) {
		if b.query.At == nil {
			first := lo + (step-(lo-from)%step)%step
			if first < hi {
				if err := b.add(t, first, (hi-1-first)/step+1, step); err != nil {
					return err
				}
			}
			continue
		}
		for len(b.at) > 0 && b.at[0] < lo {
			b.at = b.at[1:]
		}
		for len(b.at) > 0 && b.at[0] < hi {
			if err := b.add(t, b.at[0], 1, 1); err != nil {
				return err
			}
			b.at = b.at[1:]
		}
	}
	return nil
}

// add appends count anchors from first on, which is behind all anchors of the ticker t so far. If they continue the
// run before, or if it and they are single, they join it.
func (b *builder) add(t int, first, count, step int64) error {
	start := int64(0)
	if n := len(b.runs); n > 0 {
		start = b.runs[n-1].end
	}
	if count > math.MaxInt-start {
		return fmt.Errorf("more than %d windows, the most that can be numbered here: take a larger stride or fewer tickers",
			math.MaxInt)
	}
	if count == 1 {
		step = 1
	}
	if n := len(b.runs); n > b.first {
		r := &b.runs[n-1]
		size := r.end
		if n > 1 {
			size -= b.runs[n-2].end
		}
		last := r.anchor(r.end - 1)
		d := first - last
		if (size == 1 || d == int64(r.step)) && (count == 1 || d == step) && d <= math.MaxUint32 {
			r.step = uint32(d)
			r.base = last - (r.end-1)*d
			r.end += count
			return nil
		}
	}
	if uint64(len(b.runs)) == math.MaxUint32 {
		return fmt.Errorf("more than %d runs of windows: query fewer tickers", uint32(math.MaxUint32))
	}
	b.runs = append(b.runs, run{end: start + count, base: first - start*step, step: uint32(step), ticker: uint32(t)})
	return nil
}

// lists holds for each ticker the numbers of the lists that it has in a set of columns or break sets.
type lists struct {
	start   []int // of ticker t's numbers; nil if there are none at all
	numbers []int
}

// newLists collects uses by ticker, checking both against the counts: O(tickers + uses).
func newLists(tickers, count int, uses [][]format.Use) (lists, error) {
	total := 0
	for _, list := range uses {
		total += len(list)
	}
	if total == 0 {
		return lists{}, nil
	}
	start := make([]int, tickers+1)
	for _, list := range uses {
		for _, u := range list {
			if u.Ticker < 0 || u.Ticker >= tickers || u.List < 0 || u.List >= count {
				return lists{}, fmt.Errorf("ticker %d of %d uses list %d of %d", u.Ticker, tickers, u.List, count)
			}
			start[u.Ticker]++
		}
	}
	sum := 0
	for t, n := range start {
		sum += n
		start[t] = sum
	}
	// Filling each ticker's numbers from its end moves start[t] from there to where they begin.
	numbers := make([]int, total)
	for _, list := range uses {
		for _, u := range list {
			start[u.Ticker]--
			numbers[start[u.Ticker]] = u.List
		}
	}
	return lists{start, numbers}, nil
}

// of returns the distinct numbers of ticker t's lists, ascending. It reorders them in place.
func (l *lists) of(t int) []int {
	if l.start == nil {
		return nil
	}
	numbers := l.numbers[l.start[t]:l.start[t+1]]
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
