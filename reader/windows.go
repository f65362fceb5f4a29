package reader

import (
	"fmt"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/index"
)

// Pos is where a window stands: a ticker by its number, its first row, and its last, the anchor.
type Pos struct {
	Ticker        int
	First, Anchor int64
}

// Len returns the number of windows.
func (w *Windows) Len() int { return w.ix.Len() }

// Locate returns where window i stands: expected O(1), no allocation. It panics if i is not in [0, Len).
func (w *Windows) Locate(i int) Pos {
	t, a := w.ix.Locate(i)
	return Pos{t, a - w.lookback + 1, a}
}

// Number returns the number of the window of a ticker with the given anchor row, and whether there is one.
func (w *Windows) Number(ticker int, anchor int64) (int, bool) { return w.ix.Number(ticker, anchor) }

// Range returns the numbers [from, to) of a ticker's windows.
func (w *Windows) Range(ticker int) (from, to int) { return w.ix.Range(ticker) }

// Index returns the numbering, for those that work with runs of windows.
func (w *Windows) Index() *index.Windows { return w.ix }

// Query returns the query with its defaults filled in.
func (w *Windows) Query() Query { return w.query }

// Store returns the store.
func (w *Windows) Store() *Store { return w.s }

// Inputs returns how the inputs of a window lie in memory.
func (w *Windows) Inputs() Layout { return w.inputs.layout }

// Targets returns how the targets of a window lie in memory; without targets it is empty.
func (w *Windows) Targets() Layout { return w.targets.layout }

// Time returns the time of a row of a ticker.
func (s *Store) Time(ticker int, row int64) (time.Time, error) {
	if ticker < 0 || ticker >= len(s.meta.Tickers.Rows) || row < 0 || row >= s.Rows(ticker) {
		return time.Time{}, badQuery("row %d of ticker %d is not in the store", row, ticker)
	}
	if err := s.acquire(); err != nil {
		return time.Time{}, err
	}
	defer s.release()
	var t time.Time
	err := s.guard(func() error {
		tk := s.meta.Tickers
		v, err := s.int64s(s.meta.Calendars.Offset[tk.Calendar[ticker]]+8*(tk.First[ticker]+row), 1)
		if err == nil {
			t = s.meta.Schema.Unit.Time(v[0])
		}
		return err
	})
	return t, err
}

// checkIDs reports the first number that is not a window's.
func (w *Windows) checkIDs(ids []int) error {
	n := w.Len()
	for k, i := range ids {
		if uint(i) >= uint(n) {
			return badQuery("ids[%d] is window %d, there are %d", k, i, n)
		}
	}
	return nil
}

// offset returns the byte at which a row of a ticker's block starts.
func (s *Store) offset(ticker, group int, row int64) int64 {
	return s.meta.Blocks.Offset[ticker*len(s.rowBytes)+group] + row*s.rowBytes[group]
}

func (s *Store) checkSeries(ticker, group int, dtype format.DType) error {
	switch {
	case ticker < 0 || ticker >= len(s.meta.Tickers.Names):
		return badQuery("ticker %d, there are %d", ticker, len(s.meta.Tickers.Names))
	case group < 0 || group >= len(s.meta.Schema.Groups):
		return badQuery("group %d, there are %d", group, len(s.meta.Schema.Groups))
	case s.meta.Schema.Groups[group].DType != dtype:
		return badQuery("group %q is %s, not %s", s.meta.Schema.Groups[group].Name, s.meta.Schema.Groups[group].DType, dtype)
	}
	return nil
}

// String tells what the windows are.
func (w *Windows) String() string {
	q := &w.query
	return fmt.Sprintf("%d windows of %s: lookback %d, horizons %v, stride %d", w.Len(), w.s.path, q.Lookback, q.Horizons, q.Stride)
}
