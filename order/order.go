package order

import (
	"fmt"
	"math"
)

// Order is a bijection of [0, Len): At gives the number at a position. Orders are values that may be copied, safe for
// concurrent use.
type Order struct {
	kind Kind
	n    uint64
	seed uint64
	all  permutation // exact; of blocked that of chunks

	// blocked
	epoch    uint64
	w, k     uint64
	groups   uint64
	q, m     uint64
	lacking  uint64 // of the last chunk
	last     uint64 // its place in the permuted order
	lastIn   uint64 // its group
	lastFrom uint64 // number within that group at which its missing windows would start
}

// Kind names an order.
type Kind uint8

// The kinds of orders.
const (
	KindSequential Kind = iota
	KindExact
	KindBlocked
)

func (k Kind) String() string {
	if k > KindBlocked {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return [...]string{"sequential", "exact", "blocked"}[k]
}

// maxN keeps every product of the package below 2^64.
const maxN = 1 << 62

func checkN(n int64) error {
	if n < 0 || n >= maxN {
		return fmt.Errorf("order: n is %d, must be 0 to 2^62-1", n)
	}
	return nil
}

// Sequential returns the order of the numbers themselves.
func Sequential(n int64) (Order, error) {
	return Order{kind: KindSequential, n: uint64(n)}, checkN(n)
}

// Exact returns a permutation over all n numbers. Use it when the file fits in memory.
func Exact(n, seed, epoch int64) (Order, error) {
	if err := checkN(n); err != nil {
		return Order{}, err
	}
	return Order{
		kind: KindExact, n: uint64(n), seed: uint64(seed), epoch: uint64(epoch),
		all: newPermutation(uint64(n), key(uint64(seed), uint64(epoch), 0)),
	}, nil
}

// Blocked returns the order for files larger than memory: chunks of w neighbouring numbers are permuted and cut into
// groups of at most k chunks, and within each group numbers are permuted.
func Blocked(n, seed, epoch, w, k int64) (Order, error) {
	if err := checkN(n); err != nil {
		return Order{}, err
	}
	if w < 1 || k < 1 {
		return Order{}, fmt.Errorf("order: chunks of %d numbers in groups of %d chunks, both must be at least 1", w, k)
	}
	o := Order{kind: KindBlocked, n: uint64(n), seed: uint64(seed), epoch: uint64(epoch), w: uint64(w), k: uint64(k)}
	if n == 0 {
		o.groups = 1
		return o, nil
	}
	chunks := (o.n-1)/o.w + 1
	o.all = newPermutation(chunks, key(o.seed, o.epoch, 1))
	o.groups = (chunks-1)/o.k + 1
	o.q, o.m = chunks/o.groups, chunks%o.groups
	o.lacking = (o.w - o.n%o.w) % o.w
	o.last = o.all.find(chunks - 1)
	o.lastIn = o.groupOf(o.last)
	o.lastFrom = (o.last-o.slot(o.lastIn))*o.w + o.w - o.lacking
	return o, nil
}

// Kind returns the kind.
func (o *Order) Kind() Kind { return o.kind }

// Len returns n.
func (o *Order) Len() int64 { return int64(o.n) }

// Seed returns the seed; 0 of a sequential order.
func (o *Order) Seed() int64 { return int64(o.seed) }

// Epoch returns the epoch; 0 of a sequential order.
func (o *Order) Epoch() int64 { return int64(o.epoch) }

// Chunk returns the numbers in a chunk and the chunks in a group of a blocked order, else zeros.
func (o *Order) Chunk() (w, k int64) { return int64(o.w), int64(o.k) }

// slot returns the first place of a group in the permuted order of chunks.
func (o *Order) slot(g uint64) uint64 { return g*o.q + min(g, o.m) }

// groupOf returns the group of a place.
func (o *Order) groupOf(s uint64) uint64 {
	if long := o.m * (o.q + 1); s >= long {
		return o.m + (s-long)/o.q
	}
	return s / (o.q + 1)
}

// first returns the position at which a group starts.
func (o *Order) first(g uint64) uint64 {
	p := o.slot(g) * o.w
	if g > o.lastIn {
		p -= o.lacking
	}
	return p
}

// Groups returns the number of groups of a blocked order; other orders have one.
func (o *Order) Groups() int64 {
	if o.kind != KindBlocked {
		return 1
	}
	return int64(o.groups)
}

// Group returns the positions [from, to) of a group of a blocked order.
func (o *Order) Group(g int64) (from, to int64) {
	if o.kind != KindBlocked {
		return 0, int64(o.n)
	}
	return int64(o.first(uint64(g))), int64(o.first(uint64(g) + 1))
}

// GroupOf returns the group of a position. It panics if the position is not in [0, Len).
func (o *Order) GroupOf(position int64) int64 {
	o.check(position)
	if o.kind != KindBlocked {
		return 0
	}
	return int64(o.groupAt(uint64(position)))
}

func (o *Order) groupAt(p uint64) uint64 {
	if p >= o.first(o.lastIn+1) {
		p += o.lacking
	}
	return o.groupOf(p / o.w)
}

// Chunks calls use with the numbers [from, to) of each chunk of a group of a blocked order, in the permuted order, until
// it returns false. Other orders have one chunk of all numbers.
func (o *Order) Chunks(g int64, use func(from, to int64) bool) {
	if o.kind != KindBlocked {
		use(0, int64(o.n))
		return
	}
	for s := o.slot(uint64(g)); s < o.slot(uint64(g)+1); s++ {
		from := o.all.at(s) * o.w
		if !use(int64(from), int64(min(from+o.w, o.n))) {
			return
		}
	}
}

// At returns the number at a position: expected O(1), no allocation. It panics if the position is not in [0, Len).
func (o *Order) At(position int64) int64 {
	o.check(position)
	p := uint64(position)
	switch o.kind {
	case KindExact:
		return int64(o.all.at(p))
	case KindBlocked:
		g := o.groupAt(p)
		inner := o.inner(g)
		return o.blocked(g, &inner, p)
	}
	return position
}

func (o *Order) check(position int64) {
	if uint64(position) >= o.n {
		panic(fmt.Sprintf("order: position %d of %d", position, o.n))
	}
}

// inner returns the permutation within a group.
func (o *Order) inner(g uint64) permutation {
	return newPermutation(o.first(g+1)-o.first(g), key(o.seed, o.epoch, 2+g))
}

func (o *Order) blocked(g uint64, inner *permutation, p uint64) int64 {
	j := inner.at(p - o.first(g))
	if g == o.lastIn && j >= o.lastFrom {
		j += o.lacking
	}
	return int64(o.all.at(o.slot(g)+j/o.w)*o.w + j%o.w)
}

// Fill sets dst to the numbers at the positions from the given one on. It is At for each, but prepares a group once. It
// panics if they are not all in [0, Len).
func (o *Order) Fill(dst []int, position int64) {
	if len(dst) == 0 {
		return
	}
	if position < 0 || uint64(position)+uint64(len(dst)) > o.n {
		panic(fmt.Sprintf("order: positions %d to %d of %d", position, position+int64(len(dst)), o.n))
	}
	if o.kind != KindBlocked {
		for i := range dst {
			dst[i] = int(o.At(position + int64(i)))
		}
		return
	}
	p := uint64(position)
	for len(dst) > 0 {
		g := o.groupAt(p)
		inner := o.inner(g)
		n := min(uint64(len(dst)), o.first(g+1)-p)
		for i := range dst[:n] {
			dst[i] = int(o.blocked(g, &inner, p+uint64(i)))
		}
		dst, p = dst[n:], p+n
	}
}

// ChunkSize returns the w and k for [Blocked] that suit windows of the given lookback and stride over rows of rowBytes
// in all groups that they touch, with about groupBytes of rows in a group; 0: 128 MiB. The others are at least 1.
// Spec/ORDERS.md section 4.
func ChunkSize(rowBytes, lookback, stride, groupBytes int64) (w, k int64) {
	if groupBytes <= 0 {
		groupBytes = 128 << 20
	}
	rowBytes, stride = max(rowBytes, 1), max(stride, 1)
	rows := max((65536+rowBytes-1)/rowBytes, lookback)
	w = (rows + stride - 1) / stride
	if span := float64(w) * float64(stride) * float64(rowBytes); span > math.MaxInt64/2 {
		return w, 1
	}
	return w, max(1, groupBytes/(w*stride*rowBytes))
}
