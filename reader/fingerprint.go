package reader

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/wstore/wstore/order"
)

// Fingerprint names the windows and their content: spec/ORDERS.md section 7. Keep it with the state of a run.
func (w *Windows) Fingerprint() [32]byte {
	h := sha256.New()
	var buf []byte
	put := func(v ...int64) {
		buf = buf[:0]
		for _, n := range v {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(n))
		}
		h.Write(buf)
	}
	h.Write([]byte("wstore-windows-1\n"))
	h.Write(w.s.meta.Digest[:])
	length := int64(0)
	if len(w.targets.pieces) > 0 {
		length = int64(w.query.TargetLength)
	}
	put(w.lookback, length, int64(len(w.query.Horizons)))
	for _, hz := range w.query.Horizons {
		put(int64(hz))
	}
	for _, d := range []*side{&w.inputs, &w.targets} {
		put(int64(len(d.layout.Names)))
		for _, name := range d.layout.Names {
			put(int64(w.s.column[name]))
		}
	}
	ticker, n, first, last, sum := -1, int64(0), int64(0), int64(0), uint64(0)
	flush := func() {
		if n > 0 {
			put(int64(ticker), n, first, last, int64(sum))
		}
	}
	for r := range w.ix.Runs() {
		if r.Ticker != ticker {
			flush()
			ticker, n, first, sum = r.Ticker, 0, r.First, 0
		}
		n += r.Count
		last = r.Anchor(r.Count - 1)
		sum += uint64(r.Count)*uint64(r.First) + uint64(r.Step)*triangle(uint64(r.Count))
	}
	flush()
	return [32]byte(h.Sum(nil))
}

// triangle returns 0 + 1 + … + n-1 modulo 2^64.
func triangle(n uint64) uint64 {
	if n%2 == 0 {
		return n / 2 * (n - 1)
	}
	return n * ((n - 1) / 2)
}

// OrderFingerprint names the windows and an order of them.
func (w *Windows) OrderFingerprint(o order.Order) ([32]byte, error) {
	if o.Len() != int64(w.Len()) {
		return [32]byte{}, badQuery("an order of %d numbers for %d windows", o.Len(), w.Len())
	}
	return orderFingerprint(w.Fingerprint(), o.Kind().String(), o), nil
}

func orderFingerprint(windows [32]byte, name string, o order.Order) [32]byte {
	b := append([]byte("wstore-order-1\n"), windows[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	size, chunks := o.Chunk()
	for _, v := range []int64{o.Len(), o.Seed(), size, chunks} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return sha256.Sum256(b)
}

// State says where a run stands in an order: what to keep, as JSON or otherwise, to go on later.
type State struct {
	Fingerprint string `json:"fingerprint"` // of windows and order, hexadecimal
	Epoch       int64  `json:"epoch"`
	Position    int64  `json:"position"` // at which to go on: Batch.Next
}

// State returns the state of a run of an order that goes on at a position.
func (w *Windows) State(o order.Order, position int64) (State, error) {
	f, err := w.OrderFingerprint(o)
	return State{hex.EncodeToString(f[:]), o.Epoch(), position}, err
}

// Resume returns the position at which the run goes on whose state was kept: the start of an order.Share. It refuses,
// with ErrQuery, the state of other data, windows, another order or epoch.
func (w *Windows) Resume(o order.Order, s State) (start int64, err error) {
	now, err := w.State(o, s.Position)
	switch {
	case err != nil:
		return 0, err
	case s.Fingerprint != now.Fingerprint:
		return 0, badQuery("the state is of other data, windows or of another order (fingerprint %.16s…, here %.16s…); start anew", s.Fingerprint, now.Fingerprint)
	case s.Epoch != now.Epoch:
		return 0, badQuery("the state is of epoch %d, the order of epoch %d", s.Epoch, now.Epoch)
	case s.Position < 0 || s.Position > o.Len():
		return 0, badQuery("the state's position is %d, must be 0 to %d", s.Position, o.Len())
	}
	return s.Position, nil
}
