package reader

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wstore/wstore/internal/mmapfile"
	"github.com/wstore/wstore/order"
)

// prefetcher tells the system what will be read. All of it is advice: without a mapping, or where the system takes no
// advice, nothing happens and everything works, slower.
//
// What is measured behind it: under a memory limit a plain mapping read at random takes its whole readahead for each
// window, some hundred windows a second; advised Random it takes single pages; announced in pieces of what the system
// reads at most of one announcement, it runs nearly as from memory. Announcing takes time, for memory is found and pages are
// asked for before it returns, so that a goroutine of its own does it.
type prefetcher struct {
	w     *Windows
	o     *order.Order
	share *order.Share

	pieces chan extent // to announce
	over   atomic.Bool // nothing more is to be announced
	done   sync.WaitGroup

	extents       // what is left to announce: of a blocked order of the group before next
	next    int64 // of a blocked order, the first group that has not been in the extents
	ids     []int // of an exact one, the windows of the batch that is announced
}

// part is what a window takes of a group: rows from the anchor + from to before the anchor + to.
type part struct {
	group    int
	from, to int64
}

// extent is a piece of the file.
type extent struct{ from, to int64 }

// extents are where windows lie, in the order of the file once they are prepared.
type extents struct {
	of    *Windows
	parts []part
	queue []extent
	left  int64 // bytes
}

func (w *Windows) extents() extents {
	e := extents{of: w}
	for _, g := range w.inputs.groups() {
		e.parts = append(e.parts, part{g, 1 - w.lookback, 1})
	}
	for _, g := range w.targets.groups() {
		e.parts = append(e.parts, part{g, w.first, w.first + int64(w.targets.layout.Span())})
	}
	return e
}

// windows puts single windows in place of what there was.
func (e *extents) windows(ids []int) {
	e.queue = e.queue[:0]
	for _, i := range ids {
		e.enqueue(i, i+1)
	}
	e.prepare()
}

// prepare puts the queue in the order of the file, by whole pages and without overlap.
func (e *extents) prepare() {
	slices.SortFunc(e.queue, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	out := e.queue[:0]
	e.left = 0
	for _, x := range e.queue {
		x.from, x.to = mmapfile.Pages(x.from, x.to)
		if n := len(out); n > 0 && x.from <= out[n-1].to {
			x.from = out[n-1].to
			x.to = max(x.to, x.from)
			out[n-1].to = x.to
		} else {
			out = append(out, x)
		}
		e.left += x.to - x.from
	}
	e.queue = out
}

// enqueue appends the pieces of the file, for each ticker and part one, that the windows [from, to) lie in.
func (e *extents) enqueue(from, to int) {
	for i := from; i < to; {
		t, first := e.of.ix.Locate(i)
		end, last := i+1, first
		if end < to {
			_, behind := e.of.ix.Range(t)
			end = min(to, behind)
			_, last = e.of.ix.Locate(end - 1)
		}
		for _, q := range e.parts {
			e.queue = append(e.queue, extent{e.of.s.offset(t, q.group, first+q.from), e.of.s.offset(t, q.group, last+q.to)})
		}
		i = end
	}
}

func (w *Windows) prefetcher(o *order.Order, share *order.Share) *prefetcher {
	if w.s.m == nil || o.Kind() == order.KindSequential {
		return &prefetcher{}
	}
	w.s.advise(1)
	p := &prefetcher{w: w, o: o, share: share, extents: w.extents()}
	p.pieces = make(chan extent, 1024)
	p.done.Go(p.announcer)
	return p
}

// announcer announces the pieces. Those of a blocked order, which are wanted much later, it has the system put into the page
// table after a while. That waits for what is still being read, and reads what was left out: where memory is short an
// announcement may be ignored.
func (p *prefetcher) announcer() {
	const behind = 64
	var asked [behind]extent
	for k := 0; ; k = (k + 1) % behind {
		e, more := <-p.pieces
		if !more {
			return
		}
		if p.over.Load() {
			continue
		}
		p.w.s.m.WillNeed(e.from, e.to)
		if p.o.Kind() == order.KindBlocked {
			p.w.s.m.Populate(asked[k].from, asked[k].to)
			asked[k] = e
		}
	}
}

// end ends the announcing. Nothing else may be in progress.
func (p *prefetcher) end() {
	if p.w == nil {
		return
	}
	p.over.Store(true)
	close(p.pieces)
	p.done.Wait()
	p.w.s.advise(-1)
}

// advise counts the readers at random: with the first the mapping is advised so, with the last no longer.
func (s *Store) advise(change int) {
	s.random.Lock()
	defer s.random.Unlock()
	switch s.random.readers += change; {
	case s.random.readers == 1 && change > 0:
		s.m.Advise(mmapfile.Random)
	case s.random.readers == 0:
		s.m.Advise(mmapfile.Normal)
	}
}

// before is called before the batch of a step is gathered.
func (p *prefetcher) before(step int64) {
	switch {
	case p.w == nil:
	case p.o.Kind() == order.KindBlocked:
		p.blocked(step)
	default:
		p.exact(step + 1)
	}
}

// exact announces the batch of a step, in the order of the file, unless a sample of it is in memory.
func (p *prefetcher) exact(step int64) {
	if step >= p.share.Steps() {
		return
	}
	from, n, _ := p.share.Step(step)
	p.ids = slices.Grow(p.ids[:0], int(n))[:n]
	p.o.Fill(p.ids, from)
	if p.w.resident(p.ids) {
		return
	}
	p.windows(p.ids)
	p.announce(p.left)
}

// announce tells the system that windows are wanted now, in the order of the file, unless a sample of them is in memory.
// Then the next few calls don't look: a file that is in memory mostly stays there, and looking takes system calls.
func (w *Windows) announce(ids []int) {
	const (
		few  = 16 // windows are read as fast as they are looked at
		rest = 15
	)
	if w.s.m == nil || len(ids) < few || w.s.warm.Add(-1) >= 0 {
		return
	}
	if w.resident(ids) {
		w.s.warm.Store(rest)
		return
	}
	w.s.warm.Store(0)
	e := w.extents()
	e.windows(ids)
	for _, x := range e.queue {
		w.s.m.WillNeed(x.from, x.to)
	}
}

// resident reports whether all of a sample of windows are in memory.
func (w *Windows) resident(ids []int) bool {
	const sample = 8
	for k := range min(sample, len(ids)) {
		t, a := w.ix.Locate(ids[k*len(ids)/sample%len(ids)])
		if !mmapfile.Resident(w.s.file, w.s.offset(t, w.inputs.pieces[0].group, a)) {
			return false
		}
	}
	return true
}

// blocked announces what is missing of the groups that a step's batch is in, and its share of the group behind them.
func (p *prefetcher) blocked(step int64) {
	from, n, _ := p.share.Step(step)
	if n == 0 {
		return
	}
	first, last := p.o.GroupOf(from), p.o.GroupOf(from+n-1)
	p.next = max(p.next, first)
	if p.next <= last+1 {
		p.announce(p.left)
		for ; p.next <= last; p.next++ {
			p.fill(p.next)
			p.announce(p.left)
		}
		p.fill(p.next)
		p.next++
	}
	_, end := p.o.Group(last)
	batches := max(1, (end-from)/max(1, p.share.Next(step)-p.share.Next(step-1))) // that are left in the group
	p.announce((p.left + batches - 1) / batches)
}

// fill puts the extents of a group into the queue, which is empty.
func (p *prefetcher) fill(g int64) {
	p.queue = p.queue[:0]
	if g < p.o.Groups() {
		p.o.Chunks(g, func(from, to int64) bool {
			p.enqueue(int(from), int(to))
			return true
		})
	}
	p.prepare()
}

// announce announces the next n bytes of the queue, or somewhat more.
func (p *prefetcher) announce(n int64) {
	for n > 0 && len(p.queue) > 0 {
		e := &p.queue[0]
		piece := min(e.to-e.from, mmapfile.Piece)
		p.pieces <- extent{e.from, e.from + piece}
		e.from += piece
		n, p.left = n-piece, p.left-piece
		if e.from == e.to {
			p.queue = p.queue[1:]
		}
	}
}
