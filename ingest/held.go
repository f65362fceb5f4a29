package ingest

import (
	"context"
	"slices"
	"sync"
)

// mostHeld is the most bytes that what groups hold may take: pages of Parquet, texts,
// dictionaries and the windows of decoders of Arrow.
const mostHeld = 2 << 30

// heldBytes counts what the groups hold that are being read. The first of them goes
// on whatever the others hold; these wait for it when there is no room.
type heldBytes struct {
	ctx    context.Context
	mu     sync.Mutex
	freed  sync.Cond
	total  int64
	groups []*groupBytes // not finished, in order
}

// groupBytes counts what one group holds. A nil one counts nothing.
type groupBytes struct {
	all *heldBytes
	n   int64
}

// newHeldBytes counts until ctx ends.
func newHeldBytes(ctx context.Context) *heldBytes {
	h := &heldBytes{ctx: ctx}
	h.freed.L = &h.mu
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.freed.Broadcast()
	})
	return h
}

// begin counts for one more group.
func (h *heldBytes) begin() *groupBytes {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := &groupBytes{all: h}
	h.groups = append(h.groups, g)
	return g
}

// add counts n more bytes, once there is room for them.
func (g *groupBytes) add(n int64) error {
	if g == nil {
		return nil
	}
	h := g.all
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.n+n > mostHeld {
		return tooMuch("write smaller row groups or batches, with smaller pages", "what is held at once of a group of rows takes more than %d MiB", mostHeld>>20)
	}
	for h.total+n > mostHeld && h.groups[0] != g && h.ctx.Err() == nil {
		h.freed.Wait()
	}
	g.n, h.total = g.n+n, h.total+n
	return h.ctx.Err()
}

// end gives back what the group holds.
func (g *groupBytes) end() {
	h := g.all
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total -= g.n
	h.groups = slices.DeleteFunc(h.groups, func(other *groupBytes) bool { return other == g })
	h.freed.Broadcast()
}
