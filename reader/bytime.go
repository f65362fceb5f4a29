package reader

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/wstore/wstore/order"
)

// ByTime arranges windows by anchor time, for batches of all tickers at one time. Its methods may be called from any
// goroutine.
type ByTime struct {
	w       *Windows
	times   []int64
	tickers []int // those with windows
}

// ByTime returns the windows arranged by their distinct anchor times: O(windows) time, memory of a bit for each entry of
// the calendars, and of the distinct times.
func (w *Windows) ByTime() (*ByTime, error) {
	b := &ByTime{w: w}
	err := w.s.withTimes(func(func(int) []int64) (err error) {
		b.times, err = w.anchorTimes()
		return err
	})
	if err != nil {
		return nil, err
	}
	for r := range w.ix.Runs() {
		if n := len(b.tickers); n == 0 || b.tickers[n-1] != r.Ticker {
			b.tickers = append(b.tickers, r.Ticker)
		}
	}
	return b, nil
}

// anchorTimes returns the distinct anchor times of the windows, ascending, in units of the file.
func (w *Windows) anchorTimes() ([]int64, error) {
	tk, cals := w.s.meta.Tickers, w.s.meta.Calendars
	marks := make([][]uint64, len(cals.Entries)) // a bit for each entry
	for r := range w.ix.Runs() {
		c := tk.Calendar[r.Ticker]
		if marks[c] == nil {
			marks[c] = make([]uint64, (cals.Entries[c]+63)/64)
		}
		for k := range r.Count {
			e := tk.First[r.Ticker] + r.Anchor(k)
			marks[c][e/64] |= 1 << (e % 64)
		}
	}
	var all timeSet
	for c, words := range marks {
		if words == nil {
			continue
		}
		times, err := w.s.int64s(cals.Offset[c], cals.Entries[c])
		if err != nil {
			return nil, err
		}
		for i, word := range words {
			for ; word != 0; word &= word - 1 {
				all.insert(times[64*i+bits.TrailingZeros64(word)])
			}
		}
	}
	all.compact()
	return all.list, nil
}

// Len returns the number of distinct anchor times. It is the n of an order by time.
func (b *ByTime) Len() int { return len(b.times) }

// Times returns the distinct anchor times, ascending, in units of the file. The slice must not be changed.
func (b *ByTime) Times() []int64 { return b.times }

// IDs appends the numbers of the windows with the k-th anchor time, in ticker order, for Gather: O(tickers log runs +
// calendars log entries).
func (b *ByTime) IDs(dst []int, k int) ([]int, error) {
	if k < 0 || k >= len(b.times) {
		return dst, badQuery("time %d, there are %d", k, len(b.times))
	}
	s := b.w.s
	tk, cals := s.meta.Tickers, s.meta.Calendars
	entries := make([]int64, len(cals.Entries)) // 1 + the time's entry in each calendar; 0: not looked up, -1: none
	err := s.withTimes(func(func(int) []int64) error {
		for _, t := range b.tickers {
			c := tk.Calendar[t]
			if entries[c] == 0 {
				times, err := s.int64s(cals.Offset[c], cals.Entries[c])
				if err != nil {
					return err
				}
				entries[c] = -1
				if e, found := slices.BinarySearch(times, b.times[k]); found {
					entries[c] = 1 + int64(e)
				}
			}
			if entries[c] < 0 {
				continue
			}
			if i, ok := b.w.ix.Number(t, entries[c]-1-tk.First[t]); ok {
				dst = append(dst, i)
			}
		}
		return nil
	})
	return dst, err
}

// OrderFingerprint names the windows and an order, sequential or exact, of their times.
func (b *ByTime) OrderFingerprint(o order.Order) ([32]byte, error) {
	if o.Kind() == order.KindBlocked || o.Len() != int64(len(b.times)) {
		return [32]byte{}, badQuery("an order by time is sequential or exact over %d times; this is %s over %d", len(b.times), o.Kind(), o.Len())
	}
	return orderFingerprint(b.w.Fingerprint(), fmt.Sprintf("by_time-%s", o.Kind()), o), nil
}
