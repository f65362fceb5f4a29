package index

import (
	"iter"
	"math"

	"github.com/wstore/wstore/format"
)

// cursor walks an ascending list of runs, each widened by a span.
type cursor struct {
	runs []format.Run
	span
}

func (c *cursor) from() int64 { return c.runs[0].From - c.before }

// union walks the union of several cursors' runs in ascending order: O(log cursors) per run, and no memory but the
// cursors. The zero value is the empty union.
type union struct {
	heap []cursor   // those with runs left, a min-heap by from
	head format.Run // the last run that next returned
}

// none stands behind every row.
var none = format.Run{From: math.MaxInt64, To: math.MaxInt64}

func (u *union) reset() {
	u.heap = u.heap[:0]
	u.head = format.Run{From: math.MinInt64, To: math.MinInt64}
}

func (u *union) push(c cursor) {
	if len(c.runs) == 0 {
		return
	}
	u.heap = append(u.heap, c)
	for i := len(u.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if u.heap[parent].from() <= u.heap[i].from() {
			break
		}
		u.heap[parent], u.heap[i] = u.heap[i], u.heap[parent]
		i = parent
	}
}

// pop takes the widened run with the least start off the heap, which is not empty.
func (u *union) pop() format.Run {
	h := u.heap
	r := format.Run{From: h[0].from(), To: h[0].runs[0].To + h[0].after}
	if h[0].runs = h[0].runs[1:]; len(h[0].runs) == 0 {
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
	}
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].from() < h[least].from() {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	u.heap = h
	return r
}

// next returns the next maximal run of the union, or none.
func (u *union) next() format.Run {
	if len(u.heap) == 0 {
		u.head = none
		return none
	}
	r := u.pop()
	for len(u.heap) > 0 && u.heap[0].from() <= r.To {
		r.To = max(r.To, u.pop().To)
	}
	u.head = r
	return r
}

// outside yields the maximal pieces of [from, to) that the union leaves. Ranges of successive calls must ascend.
func (u *union) outside(from, to int64) iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		for from < to {
			for u.head.To <= from {
				u.next()
			}
			if from < u.head.From && !yield(from, min(to, u.head.From)) {
				return
			}
			from = u.head.To
		}
	}
}
