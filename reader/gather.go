package reader

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wstore/wstore/internal/f32"
)

// gatherGrain is the least number of elements for which another core is worth waking.
const gatherGrain = 64 << 10

// Gather copies the windows with the given numbers, in their order, into x and y, packed: x has len(ids) × lookback ×
// inputs elements, y len(ids) × horizons × target length × targets (nil without targets). All cores take part. If the
// windows are not in memory, they are first announced to the system in the order of the file; with Read access they are
// read in that order. A fault in the mapping becomes an error; what x and y hold is then undefined.
func (w *Windows) Gather(ids []int, x, y []float32) error {
	nx, ny := w.inputs.layout.Size(), w.targets.layout.Size()
	if !packed(len(x), len(ids), nx) || !packed(len(y), len(ids), ny) {
		return badQuery("gathering %d windows needs %d elements of inputs and %d of targets each, x has %d and y %d", len(ids), nx, ny, len(x), len(y))
	}
	if err := w.checkIDs(ids); err != nil {
		return err
	}
	if err := w.s.acquire(); err != nil {
		return err
	}
	defer w.s.release()
	w.announce(ids)
	return w.gather(ids, x, y)
}

// gather is Gather of numbers that are checked, under a lease, without announcing them.
func (w *Windows) gather(ids []int, x, y []float32) error {
	if w.s.data == nil {
		return w.gatherRead(ids, x, y)
	}
	nx, ny := w.inputs.layout.Size(), w.targets.layout.Size()
	workers := min(runtime.GOMAXPROCS(0), 1+(len(x)+len(y))/gatherGrain, max(len(ids), 1))
	var wg sync.WaitGroup
	errs := make([]error, workers)
	// Each takes the next few windows when it is done: one that is woken late holds up nobody.
	var next atomic.Int64
	share := func(k int) {
		errs[k] = w.s.guard(func() error {
			for {
				from := int(next.Add(ahead)) - ahead
				if from >= len(ids) {
					return nil
				}
				to := min(from+ahead, len(ids))
				w.gatherFew(ids[from:to], x[from*nx:to*nx], y[from*ny:to*ny])
			}
		})
	}
	for k := 1; k < workers; k++ {
		wg.Go(func() { share(k) })
	}
	share(0)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// packed reports whether have elements are those of n windows of the given size.
func packed(have, n, size int) bool {
	if size == 0 {
		return have == 0
	}
	return have%size == 0 && have/size == n
}

// ahead is the number of windows whose places are looked up before the first of them is copied: what is copied pushes
// the tables of places out of the cache, and looking them up one behind the other would wait for memory each time.
const ahead = 32

// gatherFew copies at most ahead windows from the mapping.
func (w *Windows) gatherFew(ids []int, x, y []float32) {
	var places [ahead]struct {
		ticker int
		anchor int64
		x, y   int64 // elements at which the rows of the first piece start
	}
	nx, ny := w.inputs.layout.Size(), w.targets.layout.Size()
	some := places[:len(ids)]
	for k := range some {
		p := &some[k]
		p.ticker, p.anchor = w.ix.Locate(ids[k])
		p.x = w.s.offset(p.ticker, w.inputs.pieces[0].group, p.anchor-w.lookback+1) >> 2
		if ny > 0 {
			p.y = w.s.offset(p.ticker, w.targets.pieces[0].group, p.anchor+w.first) >> 2
		}
	}
	for k := range some {
		p := &some[k]
		w.s.copySide(&w.inputs, x[:nx], p.ticker, p.anchor-w.lookback+1, p.x)
		if ny > 0 {
			w.s.copySide(&w.targets, y[:ny], p.ticker, p.anchor+w.first, p.y)
		}
		x, y = x[nx:], y[ny:]
	}
}

// copySide copies one side of one window from the mapping; at is the element of its first row in the first piece's group.
// Whole rows of a group are one copy, however many rows.
func (s *Store) copySide(d *side, dst []float32, ticker int, first, at int64) {
	l, width := &d.layout, len(d.layout.Names)
	group := d.pieces[0].group
	for k, start := range l.Starts {
		out := dst[k*l.Length*width : (k+1)*l.Length*width]
		for i := range d.pieces {
			p := &d.pieces[i]
			if p.group != group {
				group, at = p.group, s.offset(ticker, p.group, first)>>2
			}
			src := s.cells[at+int64(start)*int64(p.stride):]
			switch {
			case p.columns != nil:
				copyColumns(out[p.at:], src, l.Length, p.columns, width, p.stride)
			case p.n == width && p.stride == width:
				copy(out, src)
			default:
				copyRows(out[p.at:], src[p.from:], l.Length, p.n, width, p.stride)
			}
		}
	}
}

// copyRows copies n elements of each of a number of rows. A single one is not worth a call.
func copyRows(dst, src []float32, rows, n, dstStride, srcStride int) {
	if n == 1 {
		for r, o, i := 0, 0, 0; r < rows; r, o, i = r+1, o+dstStride, i+srcStride {
			dst[o] = src[i]
		}
		return
	}
	for r, o, i := 0, 0, 0; r < rows; r, o, i = r+1, o+dstStride, i+srcStride {
		copy(dst[o:o+n], src[i:i+n])
	}
}

// copyColumns copies the given elements of each of a number of rows, four at a time.
func copyColumns(dst, src []float32, rows int, columns []int, dstStride, srcStride int) {
	for r, o, i := 0, 0, 0; r < rows; r, o, i = r+1, o+dstStride, i+srcStride {
		to, from := dst[o:][:len(columns)], src[i:][:srcStride]
		k := 0
		for ; k+4 <= len(columns); k += 4 {
			c, t := columns[k:k+4:k+4], to[k:k+4:k+4]
			t[0], t[1], t[2], t[3] = from[c[0]], from[c[1]], from[c[2]], from[c[3]]
		}
		for ; k < len(columns); k++ {
			to[k] = from[columns[k]]
		}
	}
}

// gatherRead reads the windows in the order of the file.
func (w *Windows) gatherRead(ids []int, x, y []float32) error {
	order := make([]int, len(ids))
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int { return ids[a] - ids[b] })
	nx, ny := w.inputs.layout.Size(), w.targets.layout.Size()
	var buf []byte
	for _, k := range order {
		t, a := w.ix.Locate(ids[k])
		var err error
		if buf, err = w.s.readSide(&w.inputs, x[k*nx:(k+1)*nx], t, a-w.lookback+1, buf); err != nil {
			return err
		}
		if buf, err = w.s.readSide(&w.targets, y[k*ny:(k+1)*ny], t, a+w.first, buf); err != nil {
			return err
		}
	}
	return nil
}

// readSide reads one side of one window; buf is reused.
func (s *Store) readSide(d *side, dst []float32, ticker int, first int64, buf []byte) ([]byte, error) {
	l, width := &d.layout, len(d.layout.Names)
	for k, start := range l.Starts {
		out := dst[k*l.Length*width:]
		have := -1 // the group whose rows are in buf
		for _, p := range d.pieces {
			if p.group != have {
				n := l.Length * p.stride * 4
				buf = slices.Grow(buf[:0], n)[:n]
				if err := s.readInto(buf, s.offset(ticker, p.group, first+int64(start))); err != nil {
					return buf, err
				}
				have = p.group
			}
			for r := range l.Length {
				to, from := out[r*width+p.at:][:p.n], buf[4*r*p.stride:]
				if p.columns == nil {
					f32.Decode(to, from[4*p.from:])
				}
				for k, c := range p.columns {
					f32.Decode(to[k:k+1], from[4*c:])
				}
			}
		}
	}
	return buf, nil
}
