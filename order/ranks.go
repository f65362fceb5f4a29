package order

import "fmt"

// Tail says what becomes of the positions that don't fill a batch for every rank: spec/ORDERS.md section 6.
type Tail uint8

// The tails.
const (
	Keep Tail = iota // a short last batch; with one rank only
	Drop             // left out
	Pad              // filled up with the last position, marked invalid
)

func (t Tail) String() string {
	if t > Pad {
		return fmt.Sprintf("Tail(%d)", uint8(t))
	}
	return [...]string{"keep", "drop", "pad"}[t]
}

// Share is one rank's part of positions [start, n).
type Share struct {
	n, start    int64
	batch       int64
	rank, world int64
	tail        Tail
}

// NewShare returns the part of a rank of world, in batches of the given size, from a position on.
func NewShare(n, start, batch, rank, world int64, tail Tail) (Share, error) {
	s := Share{n, start, batch, rank, world, tail}
	switch {
	case checkN(n) != nil:
		return s, checkN(n)
	case start < 0 || start > n:
		return s, fmt.Errorf("order: start is %d, must be 0 to %d", start, n)
	case batch < 1 || batch > 1<<31:
		return s, fmt.Errorf("order: batch size %d, must be 1 to 2^31", batch)
	case world < 1 || world > 1<<20:
		return s, fmt.Errorf("order: world %d, must be 1 to 2^20", world)
	case rank < 0 || rank >= world:
		return s, fmt.Errorf("order: rank %d, must be 0 to %d", rank, world-1)
	case tail > Pad:
		return s, fmt.Errorf("order: tail %d does not exist", tail)
	case tail == Keep && world > 1:
		return s, fmt.Errorf("order: tail keep gives ranks unequal numbers of batches, which hangs collective training; use drop or pad")
	}
	return s, nil
}

// Len returns the number n of positions that are shared.
func (s *Share) Len() int64 { return s.n }

// Steps returns the number of batches of this rank, the same for every rank. The zero value has none.
func (s *Share) Steps() int64 {
	left, all := s.n-s.start, s.batch*s.world
	switch {
	case all == 0:
		return 0
	case s.tail == Drop:
		return left / all
	}
	return (left + all - 1) / all
}

// Step returns the positions [from, from+valid) of a step, and how many positions behind them are to be filled up with
// position n-1 (with Pad; they are invalid). Before the last step valid is the batch size.
func (s *Share) Step(step int64) (from, valid, padded int64) {
	from = s.start + (step*s.world+s.rank)*s.batch
	valid = max(0, min(s.batch, s.n-from))
	if s.tail == Pad {
		padded = s.batch - valid
	}
	return from, valid, padded
}

// Next returns the position at which a run goes on after a step: the start of a later one.
func (s *Share) Next(step int64) int64 {
	return min(s.n, s.start+(step+1)*s.world*s.batch)
}
