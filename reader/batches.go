package reader

import (
	"context"
	"iter"
	"math/bits"
	"slices"
	"sync"

	"github.com/wstore/wstore/order"
)

// Order returns an order of the given kind over the windows. A blocked one gets the chunks that suit the query, and
// groups of about groupBytes of rows, 0 for 128 MiB: spec/ORDERS.md section 4. Use order.KindExact when the file fits in
// memory, order.KindBlocked when it does not: two groups are in memory at a time, and the rows of lookback beside each of their
// chunks, so that a fifth of what memory there is makes a good group.
func (w *Windows) Order(kind order.Kind, seed, epoch, groupBytes int64) (order.Order, error) {
	n := int64(w.Len())
	switch kind {
	case order.KindSequential:
		return order.Sequential(n)
	case order.KindExact:
		return order.Exact(n, seed, epoch)
	case order.KindBlocked:
		var rowBytes int64
		for _, g := range w.groups() {
			rowBytes += w.s.rowBytes[g]
		}
		size, chunks := order.ChunkSize(rowBytes, w.lookback, int64(w.query.Stride), groupBytes)
		return order.Blocked(n, seed, epoch, size, chunks)
	}
	return order.Order{}, badQuery("order %d does not exist", kind)
}

// groups returns the groups that windows touch.
func (w *Windows) groups() []int {
	var out []int
	for _, d := range []*side{&w.inputs, &w.targets} {
		for _, g := range d.groups() {
			if !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	return out
}

// groups returns the groups that one side of the windows touches.
func (d *side) groups() []int {
	var out []int
	for i := range d.pieces {
		if g := d.pieces[i].group; !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// Batch is some windows, gathered. It is valid until the next one is asked for.
type Batch struct {
	IDs   []int     // numbers of the windows, those that fill it up included
	X, Y  []float32 // as Gather packs them
	Valid int       // windows before the filling
	Next  int64     // position at which a later run goes on
}

// Batches yields one rank's batches of an order over the windows: spec/ORDERS.md section 6. The next batch is gathered
// while the caller works on one. Under a shuffled order the mapping is advised to be read at random, and what comes is
// announced to the system ahead of time: of a blocked order the next group, spread over the batches of the current one,
// else the next batch if the file is not in memory. After an error, the last thing yielded, or the end of ctx, there
// are no more batches. The store stays open until the loop ends.
func (w *Windows) Batches(ctx context.Context, o order.Order, share order.Share) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		if err := w.checkShare(&o, &share); err != nil {
			yield(nil, err)
			return
		}
		if err := w.s.acquire(); err != nil {
			yield(nil, err)
			return
		}
		defer w.s.release()
		ahead := w.prefetcher(&o, &share)
		defer ahead.end()
		type made struct {
			b   *Batch
			err error
		}
		// Two batches go round: the caller has one while the other is gathered.
		full, empty, stop := make(chan made), make(chan *Batch, 2), make(chan struct{})
		empty <- &Batch{}
		empty <- &Batch{}
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(full)
			for step := range share.Steps() {
				var m made
				select {
				case m.b = <-empty:
					m.err = w.fill(m.b, &o, &share, step, ahead)
				case <-ctx.Done():
					m.err = ctx.Err()
				}
				select {
				case full <- m:
				case <-stop:
					return
				}
				if m.err != nil {
					return
				}
			}
		})
		defer wg.Wait()
		defer close(stop)
		for m := range full {
			if m.err == nil {
				m.err = ctx.Err()
			}
			if m.err != nil {
				yield(nil, m.err)
				return
			}
			if !yield(m.b, nil) {
				return
			}
			empty <- m.b
		}
	}
}

// checkShare reports what makes an order and a share unusable for these windows.
func (w *Windows) checkShare(o *order.Order, share *order.Share) error {
	if o.Len() != int64(w.Len()) || share.Len() != o.Len() {
		return badQuery("an order of %d numbers and a share of %d positions for %d windows", o.Len(), share.Len(), w.Len())
	}
	if share.Steps() == 0 {
		return nil
	}
	_, valid, padded := share.Step(0)
	size := 8 + 4*(uint64(w.inputs.layout.Size())+uint64(w.targets.layout.Size()))
	if hi, lo := bits.Mul64(size, uint64(valid+padded)); hi > 0 || lo > 1<<62 || !fits(int64(lo)) {
		return badQuery("a batch of %d windows of %d bytes is more than this machine can address", valid+padded, size)
	}
	return nil
}

// fill gathers the batch of a step.
func (w *Windows) fill(b *Batch, o *order.Order, share *order.Share, step int64, ahead *prefetcher) error {
	from, valid, padded := share.Step(step)
	n := int(valid + padded)
	b.IDs = slices.Grow(b.IDs[:0], n)[:n]
	o.Fill(b.IDs[:valid], from)
	for i := valid; i < valid+padded; i++ {
		b.IDs[i] = int(o.At(o.Len() - 1))
	}
	b.Valid, b.Next = int(valid), share.Next(step)
	nx, ny := n*w.inputs.layout.Size(), n*w.targets.layout.Size()
	b.X = slices.Grow(b.X[:0], nx)[:nx]
	b.Y = slices.Grow(b.Y[:0], ny)[:ny]
	ahead.before(step)
	if err := w.s.acquire(); err != nil { // nothing begins once the store is closed
		return err
	}
	defer w.s.release()
	return w.gather(b.IDs, b.X, b.Y)
}
