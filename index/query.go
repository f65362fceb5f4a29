package index

import (
	"fmt"

	"github.com/wstore/wstore/format"
)

// maxRows follows from a row's time of 8 bytes in a file smaller than 2^63 bytes.
const maxRows = 1 << 60

// Panel is what the window rules need to know of a store. Neither slice nor index is kept or changed.
type Panel struct {
	// Rows is the number of rows of each ticker.
	Rows []int64
	// Index lists breaks and missing cells; nil means that there are none.
	Index *format.Index
}

// Query says which windows to number, with every name and time already resolved: columns and break sets are numbers
// as in the schema, times are rows.
type Query struct {
	// Inputs are the columns that must not be missing in any of the Lookback rows; optional inputs are left out.
	Inputs []int
	// Targets are the columns that must not be missing in any target row; optional targets are left out.
	Targets []int
	// Horizons, strictly increasing, are the distances from the anchor to the first target row, each from
	// 1 - Lookback to 2^31 - 1. If there are none, windows have no target rows.
	Horizons []int64
	// TargetLength is the number of target rows from each horizon on, 1 to 2^31 - 1.
	TargetLength int64
	// Lookback is the number of rows of a window, the last of which is the anchor, 1 to 2^31 - 1.
	Lookback int64
	// Stride takes the first and then every Stride-th of each run of valid anchors, 1 to 2^31 - 1.
	Stride int64
	// Where are columns that must be present at the anchor. They filter, and do not shift the stride's phase.
	Where []int
	// Breaks are the break sets that count.
	Breaks []int
	// Tickers, strictly ascending, are those to keep; nil keeps all.
	Tickers []int
	// Bounds returns the range [from, to) of a ticker's rows that an anchor may have; nil means all rows. It
	// filters, and does not shift the stride's phase.
	Bounds func(ticker int) (from, to int64)
	// At returns the strictly ascending rows of a ticker at which anchors are taken, in place of a stride; the
	// slice is read before the next call. Nil takes anchors by Stride, which must be 1 otherwise.
	At func(ticker int) []int64
}

// check reports what makes p and q unusable, apart from the contents of lists, which are checked when they are used.
func check(p *Panel, q *Query) error {
	if len(p.Rows) > format.MaxTickers {
		return fmt.Errorf("index: %d tickers, the limit is %d", len(p.Rows), format.MaxTickers)
	}
	for _, v := range []struct {
		name  string
		value int64
	}{{"lookback", q.Lookback}, {"stride", q.Stride}, {"target length", q.TargetLength}} {
		if v.value < 1 || v.value > format.MaxSpan {
			return fmt.Errorf("index: %s %d is not in 1 to %d", v.name, v.value, format.MaxSpan)
		}
	}
	if q.At != nil && q.Stride != 1 {
		return fmt.Errorf("index: stride %d together with a set of times: leave one of them out", q.Stride)
	}
	if len(q.Horizons) == 0 && len(q.Targets) > 0 {
		return fmt.Errorf("index: %d targets, but no horizon", len(q.Targets))
	}
	if len(q.Horizons) > format.MaxHorizons {
		return fmt.Errorf("index: %d horizons, the limit is %d", len(q.Horizons), format.MaxHorizons)
	}
	for i, h := range q.Horizons {
		if h < 1-q.Lookback || h > format.MaxSpan {
			return fmt.Errorf("index: horizon %d is not in %d to %d, the range for lookback %d",
				h, 1-q.Lookback, format.MaxSpan, q.Lookback)
		}
		if i > 0 && h <= q.Horizons[i-1] {
			return fmt.Errorf("index: horizon %d after %d: horizons must strictly increase", h, q.Horizons[i-1])
		}
	}
	for _, b := range q.Breaks {
		if b < 0 || b >= len(p.Index.Breaks) {
			return fmt.Errorf("index: break set %d of %d", b, len(p.Index.Breaks))
		}
	}
	for i, t := range q.Tickers {
		if t < 0 || t >= len(p.Rows) {
			return fmt.Errorf("index: ticker %d of %d", t, len(p.Rows))
		}
		if i > 0 && t <= q.Tickers[i-1] {
			return fmt.Errorf("index: ticker %d after %d: tickers must strictly ascend", t, q.Tickers[i-1])
		}
	}
	return nil
}

// checkBreaks reports a list that cannot be the breaks of a ticker with that many rows.
func checkBreaks(list []int64, rows int64) error {
	last := int64(0)
	for _, r := range list {
		if r <= last || r >= rows {
			return fmt.Errorf("break before row %d, behind %d, of %d rows", r, last, rows)
		}
		last = r
	}
	return nil
}

// checkMissing reports a list that cannot be the missing runs of a ticker with that many rows.
func checkMissing(list []format.Run, rows int64) error {
	end := int64(0)
	for _, r := range list {
		if r.From < end || r.To <= r.From || r.To > rows {
			return fmt.Errorf("missing rows [%d, %d), behind %d, of %d rows", r.From, r.To, end, rows)
		}
		end = r.To
	}
	return nil
}
