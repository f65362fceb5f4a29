package order

import "math/bits"

const (
	gold   = 0x9e3779b97f4a7c15
	mul1   = 0xbf58476d1ce4e5b9
	mul2   = 0x94d049bb133111eb
	rounds = 8
)

// mix is the finaliser of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * mul1
	z = (z ^ z>>27) * mul2
	return z ^ z>>31
}

// key derives the key of one stream of an epoch: spec/ORDERS.md section 1.
func key(seed, epoch, stream uint64) uint64 {
	return mix(mix(mix(seed+gold)^epoch) + gold*(stream+1))
}

// permutation is a keyed bijection of [0, n): spec/ORDERS.md section 2, a Feistel network with cycle walking (Black and
// Rogaway, "Ciphers with arbitrary finite domains", 2002).
type permutation struct {
	n           uint64
	left, right uint8 // bits of each half
	k           [rounds]uint64
}

func newPermutation(n, key uint64) permutation {
	p := permutation{n: n}
	if n > 1 {
		b := bits.Len64(n - 1)
		p.left = uint8(b / 2)
		p.right = uint8(b) - p.left
	}
	for r := range p.k {
		p.k[r] = mix(key + gold*uint64(r+1))
	}
	return p
}

// f is a round's function; shifting by 64 gives 0.
func f(k, x uint64, bits uint8) uint64 {
	z := (x + k) * mul1
	z = (z ^ z>>32) * mul2
	return z >> (64 - bits)
}

// at returns what i is moved to: expected O(1).
func (p *permutation) at(i uint64) uint64 {
	if p.n <= 1 {
		return i
	}
	mask := uint64(1)<<p.right - 1
	for {
		l, r := i>>p.right, i&mask
		for j := 0; j < rounds; j += 2 {
			l ^= f(p.k[j], r, p.left)
			r ^= f(p.k[j+1], l, p.right)
		}
		if i = l<<p.right | r; i < p.n {
			return i
		}
	}
}

// find is the inverse of at.
func (p *permutation) find(i uint64) uint64 {
	if p.n <= 1 {
		return i
	}
	mask := uint64(1)<<p.right - 1
	for {
		l, r := i>>p.right, i&mask
		for j := rounds - 2; j >= 0; j -= 2 {
			r ^= f(p.k[j+1], l, p.right)
			l ^= f(p.k[j], r, p.left)
		}
		if i = l<<p.right | r; i < p.n {
			return i
		}
	}
}
