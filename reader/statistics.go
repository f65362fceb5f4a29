package reader

import (
	"cmp"
	"context"
	"slices"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/index"
	"github.com/wstore/wstore/stats"
)

// Statistics returns the statistics of each input and each target column over the windows: each row once, however many
// windows hold it, and missing cells left out. Inputs count the input rows, targets the target rows. Call it on
// training windows to normalise without leakage. The result does not depend on the number of cores. Memory is that of
// the statistics of each ticker.
func (w *Windows) Statistics(ctx context.Context) (inputs, targets []stats.Moments, err error) {
	if err := w.s.acquire(); err != nil {
		return nil, nil, err
	}
	defer w.s.release()
	type tickerPart struct {
		ticker int
		runs   []index.Run
		x, y   []stats.Moments
	}
	var parts []tickerPart
	for r := range w.ix.Runs() {
		if n := len(parts); n == 0 || parts[n-1].ticker != r.Ticker {
			parts = append(parts, tickerPart{ticker: r.Ticker})
		}
		p := &parts[len(parts)-1]
		p.runs = append(p.runs, r)
	}
	err = inOrder(ctx, len(parts), func() func(int) error {
		return func(i int) error {
			p := &parts[i]
			return w.s.guard(func() (err error) {
				if p.x, err = w.s.moments(ctx, &w.inputs, p.ticker, w.rows(p.runs, &w.inputs, 1-w.lookback)); err != nil {
					return err
				}
				p.y, err = w.s.moments(ctx, &w.targets, p.ticker, w.rows(p.runs, &w.targets, w.first))
				return err
			})
		}
	})
	if err != nil {
		return nil, nil, err
	}
	inputs = make([]stats.Moments, len(w.inputs.layout.Names))
	targets = make([]stats.Moments, len(w.targets.layout.Names))
	for i := range parts {
		for c := range inputs {
			inputs[c].Merge(&parts[i].x[c])
		}
		for c := range targets {
			targets[c].Merge(&parts[i].y[c])
		}
	}
	return inputs, targets, nil
}

// rows returns the rows that one side of a ticker's windows takes up, as ascending disjoint ranges; shift is from the
// anchor to the side's first row.
func (w *Windows) rows(runs []index.Run, d *side, shift int64) []format.Run {
	length := int64(d.layout.Length)
	var all []format.Run
	for _, start := range d.layout.Starts {
		for _, r := range runs {
			first, step, n := r.First+shift+int64(start), r.Step, r.Count
			if step <= length { // each range reaches the next one
				all = append(all, format.Run{From: first, To: first + (n-1)*step + length})
				continue
			}
			for k := range n {
				all = append(all, format.Run{From: first + k*step, To: first + k*step + length})
			}
		}
	}
	slices.SortFunc(all, func(a, b format.Run) int { return cmp.Compare(a.From, b.From) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged); n > 0 && r.From <= merged[n-1].To {
			merged[n-1].To = max(merged[n-1].To, r.To)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// moments returns the statistics of a side's columns over rows of a ticker, which it reads piece by piece.
func (s *Store) moments(ctx context.Context, d *side, ticker int, rows []format.Run) ([]stats.Moments, error) {
	out := make([]stats.Moments, len(d.layout.Names))
	const most = 1 << 16 // cells of a piece
	for i := range d.pieces {
		p := &d.pieces[i]
		columns := p.columns
		if columns == nil {
			for k := range p.n {
				columns = append(columns, p.from+k)
			}
		}
		width := int64(p.stride)
		for _, r := range rows {
			for from := r.From; from < r.To; {
				n := min(max(1, most/width), r.To-from)
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				cells, err := s.float32s(s.offset(ticker, p.group, from), n*width)
				if err != nil {
					return nil, err
				}
				for ; len(cells) > 0; cells = cells[width:] {
					for k, c := range columns {
						if v := cells[c]; !format.IsMissing(v) {
							out[p.at+k].Add(float64(v))
						}
					}
				}
				from += n
			}
		}
	}
	return out, nil
}
