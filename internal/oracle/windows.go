package oracle

import (
	"fmt"
	"math"
	"slices"
)

// Query is a query as section 11.1 of the specification has it. What is nil or 0 has its default; a slice that is
// empty but not nil names nothing.
type Query struct {
	Inputs, Targets, Optional []string
	Lookback                  int64
	Horizons                  []int64
	TargetLength, Stride      int64
	At                        []int64
	Breaks                    []string
	Tickers                   []string
	Where                     []string
	From, To                  *int64
}

// Window is one window.
type Window struct {
	Ticker int   // its number in Panel.Tickers
	Anchor int64 // row
	Time   int64 // of the anchor
	// Inputs are the bits of the cells of the Lookback rows, row by row, the inputs of a row in their order.
	Inputs []uint32
	// Targets are the bits of the target cells: for each horizon, row by row, the targets of a row in their order.
	Targets []uint32
}

// Windows lists the windows of a query in order, or says why the query is not valid.
func Windows(p *Panel, q Query) ([]Window, error) {
	r, err := Resolve(p, q)
	if err != nil {
		return nil, err
	}
	var all []Window
	for number := range p.Tickers {
		if r.Tickers != nil && !slices.Contains(r.Tickers, number) {
			continue
		}
		t := &p.Tickers[number]
		rows := int64(len(t.Times))
		stretch := r.stretches(t)
		taken := int64(0) // valid anchors so far in this maximal run
		for a := range rows {
			if a > 0 && stretch[a] != stretch[a-1] {
				taken = 0 // rule 2: a run is of one stretch
			}
			if !r.valid(t, stretch, a) {
				taken = 0
				continue
			}
			take := taken%r.Stride == 0
			taken++
			if q.At != nil {
				take = slices.Contains(q.At, t.Times[a])
			}
			if !take || !r.keeps(&q, t, a) {
				continue
			}
			w := Window{Ticker: number, Anchor: a, Time: t.Times[a]}
			for row := a - r.Lookback + 1; row <= a; row++ {
				for _, c := range r.Inputs {
					w.Inputs = append(w.Inputs, t.Bits(c, row))
				}
			}
			for _, h := range r.Horizons {
				for row := a + h; row < a+h+r.TargetLength; row++ {
					for _, c := range r.Targets {
						w.Targets = append(w.Targets, t.Bits(c, row))
					}
				}
			}
			all = append(all, w)
		}
	}
	return all, nil
}

// Resolved is a query with its defaults filled in and its names resolved to numbers.
type Resolved struct {
	Inputs, Targets        []int // columns, in order
	Optional, Where        []int // columns
	Breaks                 []int // the break sets that count
	Tickers                []int // those to keep, in any order; nil: all
	Horizons               []int64
	Lookback, TargetLength int64
	Stride                 int64
}

// stretches returns for each row the number of its stretch.
func (r *Resolved) stretches(t *Ticker) []int {
	of := make([]int, len(t.Times))
	stretch := 0
	for row := range of {
		for _, set := range r.Breaks {
			if slices.Contains(t.Breaks[set], int64(row)) {
				stretch++
			}
		}
		of[row] = stretch
	}
	return of
}

// valid is rule 1.
func (r *Resolved) valid(t *Ticker, stretch []int, a int64) bool {
	whole := func(from, to int64, columns []int) bool {
		if from < 0 || to > int64(len(t.Times)) {
			return false
		}
		for row := from; row < to; row++ {
			if stretch[row] != stretch[a] {
				return false
			}
			for _, c := range columns {
				if !slices.Contains(r.Optional, c) && t.IsMissing(c, row) {
					return false
				}
			}
		}
		return true
	}
	if !whole(a-r.Lookback+1, a+1, r.Inputs) {
		return false
	}
	for _, h := range r.Horizons {
		if !whole(a+h, a+h+r.TargetLength, r.Targets) {
			return false
		}
	}
	return true
}

// keeps is rule 3 but for tickers.
func (r *Resolved) keeps(q *Query, t *Ticker, a int64) bool {
	for _, c := range r.Where {
		if t.IsMissing(c, a) {
			return false
		}
	}
	return (q.From == nil || t.Times[a] >= *q.From) && (q.To == nil || t.Times[a] < *q.To)
}

// Resolve checks a query and resolves its names.
func Resolve(p *Panel, q Query) (*Resolved, error) {
	r := &Resolved{Lookback: q.Lookback, TargetLength: q.TargetLength, Stride: q.Stride, Horizons: q.Horizons}
	var err error

	inputs := q.Inputs
	if inputs == nil {
		inputs = []string{"features"}
	}
	if r.Inputs, err = p.resolve(inputs); err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	if len(r.Inputs) == 0 {
		return nil, fmt.Errorf("inputs: none")
	}
	targets := q.Targets
	if targets == nil && slices.ContainsFunc(p.Groups, func(g Group) bool { return g.Name == "targets" }) {
		targets = []string{"targets"}
	}
	if r.Targets, err = p.resolve(targets); err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	for _, columns := range [][]int{r.Inputs, r.Targets} {
		for i, c := range columns {
			if slices.Contains(columns[:i], c) {
				return nil, fmt.Errorf("column %d is named twice", c)
			}
		}
	}
	if r.Optional, err = p.resolve(q.Optional); err != nil {
		return nil, fmt.Errorf("optional: %w", err)
	}
	for _, c := range r.Optional {
		if !slices.Contains(r.Inputs, c) && !slices.Contains(r.Targets, c) {
			return nil, fmt.Errorf("optional: column %d is neither input nor target", c)
		}
	}
	if r.Where, err = p.resolve(q.Where); err != nil {
		return nil, fmt.Errorf("where: %w", err)
	}

	if len(r.Targets) == 0 && (q.Horizons != nil || q.TargetLength != 0) {
		return nil, fmt.Errorf("horizons or target_length without targets")
	}
	if len(r.Targets) > 0 && r.Horizons == nil {
		r.Horizons = []int64{1}
	}
	if r.TargetLength == 0 {
		r.TargetLength = 1
	}
	if r.Stride == 0 {
		r.Stride = 1
	}
	for _, v := range []int64{r.Lookback, r.TargetLength, r.Stride} {
		if v < 1 || v > math.MaxInt32 {
			return nil, fmt.Errorf("lookback, target_length or stride: %d", v)
		}
	}
	if q.At != nil && r.Stride != 1 {
		return nil, fmt.Errorf("at with a stride")
	}
	if len(r.Targets) > 0 && (len(r.Horizons) < 1 || len(r.Horizons) > 4096) {
		return nil, fmt.Errorf("%d horizons", len(r.Horizons))
	}
	for i, h := range r.Horizons {
		if h < 1-r.Lookback || h > math.MaxInt32 || i > 0 && h <= r.Horizons[i-1] {
			return nil, fmt.Errorf("horizon %d", h)
		}
	}

	for set, s := range p.BreakSets {
		if q.Breaks == nil || slices.Contains(q.Breaks, s.Name) {
			r.Breaks = append(r.Breaks, set)
		}
	}
	for _, name := range q.Breaks {
		if !slices.ContainsFunc(p.BreakSets, func(s BreakSet) bool { return s.Name == name }) {
			return nil, fmt.Errorf("breaks: unknown %q", name)
		}
	}
	if q.Tickers != nil {
		r.Tickers = []int{}
	}
	for _, name := range q.Tickers {
		i := slices.IndexFunc(p.Tickers, func(t Ticker) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("tickers: unknown %q", name)
		}
		r.Tickers = append(r.Tickers, i)
	}
	return r, nil
}

// resolve returns the float32 columns that names stand for, in order.
func (p *Panel) resolve(names []string) ([]int, error) {
	var columns []int
	for _, name := range names {
		n := 0
		found := false
		for _, g := range p.Groups {
			for _, c := range g.Columns {
				if name == g.Name || name == c.Name {
					if g.LabelEnd {
						return nil, fmt.Errorf("%q is not float32", name)
					}
					columns = append(columns, n)
					found = true
				}
				n++
			}
		}
		if !found {
			return nil, fmt.Errorf("unknown %q", name)
		}
	}
	return columns, nil
}
