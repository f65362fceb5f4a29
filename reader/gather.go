package reader

import (
	"runtime"
	"slices"
	"sync"

	"github.com/wstore/wstore/internal/f32"
)

// gatherGrain is the least number of elements for which another core is worth waking.
const gatherGrain = 64 << 10

// Gather copies the windows with the given numbers, in their order, into x and y, packed: x has len(ids) × lookback ×
// inputs elements, y len(ids) × horizons × target length × targets (nil without targets). All cores take part; with
// Read access the file is read in its order. A fault in the mapping becomes an error; what x and y hold is then
// undefined.
func (w *Windows) Gather(ids []int, x, y []float32) error {
	nx, ny := w.inputs.layout.Size(), w.targets.layout.Size()
	if len(x) != len(ids)*nx || len(y) != len(ids)*ny {
		return badQuery("gathering %d windows needs %d and %d elements, x has %d and y %d", len(ids), len(ids)*nx, len(ids)*ny, len(x), len(y))
	}
	if err := w.checkIDs(ids); err != nil {
		return err
	}
	if err := w.s.acquire(); err != nil {
		return err
	}
	defer w.s.release()
	if w.s.data == nil {
		return w.gatherRead(ids, x, y)
	}
	workers := min(runtime.GOMAXPROCS(0), 1+(len(x)+len(y))/gatherGrain, max(len(ids), 1))
	if workers == 1 {
		return w.gatherMapped(ids, x, y)
	}
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for k := range workers {
		from, to := k*len(ids)/workers, (k+1)*len(ids)/workers
		wg.Go(func() { errs[k] = w.gatherMapped(ids[from:to], x[from*nx:to*nx], y[from*ny:to*ny]) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Windows) gatherMapped(ids []int, x, y []float32) error {
	return w.s.guard(func() error {
		nx, ny := w.inputs.layout.Size(), w.targets.layout.Size()
		for k, i := range ids {
			t, a := w.ix.Locate(i)
			w.s.copySide(&w.inputs, x[k*nx:(k+1)*nx], t, a-w.lookback+1)
			if ny > 0 {
				w.s.copySide(&w.targets, y[k*ny:(k+1)*ny], t, a+w.first)
			}
		}
		return nil
	})
}

// copySide copies one side of one window from the mapping. Whole rows of a group are one copy, however many rows.
func (s *Store) copySide(d *side, dst []float32, ticker int, first int64) {
	l, width := &d.layout, len(d.layout.Names)
	for _, p := range d.pieces {
		stride := len(s.meta.Schema.Groups[p.group].Columns)
		for k, start := range l.Starts {
			src := s.cells[s.offset(ticker, p.group, first+int64(start))/4:]
			out := dst[k*l.Length*width:]
			if p.n == width && stride == width {
				copy(out[:l.Length*width], src)
				continue
			}
			copyRows(out[p.at:], src[p.from:], l.Length, p.n, width, stride)
		}
	}
}

// copyRows copies n elements of each of a number of rows. Few elements are not worth a call.
func copyRows(dst, src []float32, rows, n, dstStride, srcStride int) {
	switch n {
	case 1:
		for r, o, i := 0, 0, 0; r < rows; r, o, i = r+1, o+dstStride, i+srcStride {
			dst[o] = src[i]
		}
	default:
		for r, o, i := 0, 0, 0; r < rows; r, o, i = r+1, o+dstStride, i+srcStride {
			copy(dst[o:o+n], src[i:i+n])
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
	for _, p := range d.pieces {
		g := &s.meta.Schema.Groups[p.group]
		stride := len(g.Columns)
		for k, start := range l.Starts {
			n := l.Length * stride * 4
			buf = slices.Grow(buf[:0], n)[:n]
			off := s.offset(ticker, p.group, first+int64(start))
			if _, err := s.src.ReadAt(buf, off); err != nil {
				return buf, s.readError(off, int64(n), err)
			}
			out := dst[k*l.Length*width:]
			for r := range l.Length {
				f32.Decode(out[r*width+p.at:r*width+p.at+p.n], buf[4*(r*stride+p.from):])
			}
		}
	}
	return buf, nil
}
