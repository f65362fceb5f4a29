package reader

import (
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/index"
	"github.com/wstore/wstore/internal/f32"
)

// float32s returns n cells from byte off on: a view of the mapping, or a copy where there is none.
func (s *Store) float32s(off, n int64) ([]float32, error) {
	if s.data != nil {
		return s.cells[off/4 : off/4+n : off/4+n], nil
	}
	b, err := s.readAt(off, 4*n)
	if err != nil {
		return nil, err
	}
	out := make([]float32, n)
	f32.Decode(out, b)
	return out, nil
}

// int64s returns n times from byte off on, in the same way.
func (s *Store) int64s(off, n int64) ([]int64, error) {
	if s.data != nil {
		if v, ok := f32.ViewInt64(s.data[off : off+8*n]); ok {
			return v, nil
		}
	}
	b, err := s.readAt(off, 8*n)
	if err != nil {
		return nil, err
	}
	out := make([]int64, n)
	f32.DecodeInt64(out, b)
	return out, nil
}

// View is a lease on a store's memory. Its slices are valid until Release, and read-only: writing to them faults (with
// Read access they are copies). A view may be used by many goroutines at once.
type View struct {
	s        *Store
	ix       *index.Windows
	cells    []float32
	x, y     viewSide
	released atomic.Bool
	err      atomic.Pointer[error]
}

// viewSide says where one side of the windows stands, so that At is a few additions.
type viewSide struct {
	n      int64   // elements of a window
	blocks []int64 // the byte of the block of ticker t at t × groups + group
	groups int
	group  int
	width  int64
	shift  int64 // rows from the anchor to the first row
}

// element returns the number of the window's first element in the file.
func (v *viewSide) element(ticker int, anchor int64) int64 {
	return v.blocks[ticker*v.groups+v.group]>>2 + (anchor+v.shift)*v.width
}

func (s *Store) viewSide(d *side, shift int64) (viewSide, error) {
	if len(d.pieces) == 0 {
		return viewSide{}, nil
	}
	if d.layout.Width == 0 {
		return viewSide{}, fmt.Errorf("%w: %q and others; use Gather, or ask for columns of one group", ErrSpans, d.layout.Names[0])
	}
	width := int64(d.layout.Width)
	return viewSide{
		n: width * int64(d.layout.Span()), blocks: s.meta.Blocks.Offset, groups: len(s.rowBytes),
		group: d.pieces[0].group, width: width, shift: shift,
	}, nil
}

// View returns a view for At. It is an error, matching ErrSpans, if the inputs, or the targets, stand in several
// groups. The view must be released.
func (w *Windows) View() (*View, error) {
	x, err := w.s.viewSide(&w.inputs, 1-w.lookback)
	if err != nil {
		return nil, err
	}
	y, err := w.s.viewSide(&w.targets, w.first)
	if err != nil {
		return nil, err
	}
	v, err := w.s.View()
	if err != nil {
		return nil, err
	}
	v.ix, v.x, v.y = w.ix, x, y
	return v, nil
}

// View returns a view for Series and Times. It must be released.
func (s *Store) View() (*View, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	return &View{s: s, cells: s.cells}, nil
}

// At returns the rows of window i, the full width of the group, as [Windows.Inputs] and [Windows.Targets] describe: x
// has lookback × width elements; y those from the first target row to the last, or none without targets. It does not
// allocate or copy, except with Read access, where both are nil if reading fails, and [View.Err] says why. It panics if i
// is not in [0, Len), and on a view that a store, not windows, gave.
func (v *View) At(i int) (x, y []float32) {
	t, a := v.ix.Locate(i)
	if v.cells == nil {
		return v.read(t, a)
	}
	p := v.x.element(t, a)
	x = v.cells[p : p+v.x.n : p+v.x.n]
	if v.y.n > 0 {
		p = v.y.element(t, a)
		y = v.cells[p : p+v.y.n : p+v.y.n]
	}
	return x, y
}

// read is At without a mapping.
func (v *View) read(ticker int, anchor int64) (x, y []float32) {
	x, err := v.s.float32s(4*v.x.element(ticker, anchor), v.x.n)
	if err == nil && v.y.n > 0 {
		y, err = v.s.float32s(4*v.y.element(ticker, anchor), v.y.n)
	}
	if err != nil {
		v.err.CompareAndSwap(nil, &err)
		return nil, nil
	}
	return x, y
}

// Err returns the first error that At met. There is none but with Read access: a fault in a mapping is for Guard.
func (v *View) Err() error {
	if err := v.err.Load(); err != nil {
		return *err
	}
	return nil
}

// All yields every window in order. The loop's body may stop at any time. It ends early if reading fails, which Err
// tells.
func (v *View) All() iter.Seq2[int, Window] {
	return func(yield func(int, Window) bool) {
		for i := range v.ix.Len() {
			x, y := v.At(i)
			if v.cells == nil && v.Err() != nil || !yield(i, Window{x, y}) {
				return
			}
		}
	}
}

// Window is what At returns for one window.
type Window struct{ X, Y []float32 }

// Series returns all rows of a ticker's float32 group, rows × width row-major.
func (v *View) Series(ticker, group int) ([]float32, error) {
	if err := v.s.checkSeries(ticker, group, format.Float32); err != nil {
		return nil, err
	}
	n := v.s.Rows(ticker) * int64(len(v.s.meta.Schema.Groups[group].Columns))
	return v.s.float32s(v.s.offset(ticker, group, 0), n)
}

// Times returns the times of a ticker's rows, in units of the file.
func (v *View) Times(ticker int) ([]int64, error) {
	tk := v.s.meta.Tickers
	if ticker < 0 || ticker >= len(tk.Names) {
		return nil, badQuery("ticker %d, there are %d", ticker, len(tk.Names))
	}
	if tk.Rows[ticker] == 0 {
		return nil, nil
	}
	return v.s.int64s(v.s.meta.Calendars.Offset[tk.Calendar[ticker]]+8*tk.First[ticker], tk.Rows[ticker])
}

// LabelEnds returns all rows of a ticker's int64 group: times in units of the file, or format.NoTime.
func (v *View) LabelEnds(ticker, group int) ([]int64, error) {
	if err := v.s.checkSeries(ticker, group, format.Int64); err != nil {
		return nil, err
	}
	return v.s.int64s(v.s.offset(ticker, group, 0), v.s.Rows(ticker))
}

// Guard calls f, which may read the view's slices on this goroutine, and turns a fault in them into an error with the
// path and the byte, as it does a file that is shorter afterwards. Other panics pass through.
func (v *View) Guard(f func() error) error { return v.s.guard(f) }

// Release ends the lease; a second call does nothing.
func (v *View) Release() {
	if !v.released.Swap(true) {
		v.s.release()
	}
}
