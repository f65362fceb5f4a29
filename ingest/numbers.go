package ingest

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// f32FromInt64 gives the float32 nearest to an integer, ties to even.
func f32FromInt64(v int64) (f float32, same bool) {
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	if f, same = f32FromUint64(u); v < 0 {
		f = -f
	}
	return f, same
}

// f32FromUint64 gives the float32 nearest to an integer, ties to even.
func f32FromUint64(v uint64) (f float32, same bool) {
	// By way of a float64, which holds 53 bits: where the processor has no instruction, Go rounds to one of its own
	// accord, and then again.
	if v < 1<<53 {
		return float32(float64(v)), fits24(v)
	}
	top := v >> 11
	if v&(1<<11-1) != 0 {
		top |= 1 // not a tie
	}
	return float32(float64(top)) * (1 << 11), fits24(v)
}

// fits24 reports whether an integer has at most the 24 significant bits of a
// float32.
func fits24(u uint64) bool {
	return u>>bits.TrailingZeros64(u) < 1<<24 // 0 has 64 trailing zeros
}

// f32FromFloat64 gives the float32 nearest to v, ties to even. The kind is exact,
// inexact, overflow, or nonFinite, where f is missing.
func f32FromFloat64(v float64) (f float32, kind numberKind) {
	f = float32(v)
	switch {
	case float64(f) == v && !math.IsInf(v, 0):
		return f, exact
	case v != v || math.IsInf(v, 0):
		return missing, nonFinite
	case math.IsInf(float64(f), 0):
		return 0, overflow
	}
	return f, inexact
}

// f32FromDecimal gives the float32 nearest to a decimal of 128 bits in two's
// complement, hi<<64|lo, divided by 10^scale; and the same as a float64. The kind
// is exact, inexact or overflow.
func f32FromDecimal(hi int64, lo uint64, scale int32) (f float32, v float64, kind numberKind) {
	negative, h := hi < 0, uint64(hi)
	if negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		h, _ = bits.Sub64(0, h, borrow)
	}
	// Without the zeros that fill up the scale nearly all are short.
	for scale > 0 {
		n := min(scale, 8)
		for ; n > 0; n /= 2 {
			p := pow10Int[n]
			q, r := h/p, h%p
			low, r := bits.Div64(r, lo, p)
			if r == 0 {
				h, lo, scale = q, low, scale-n
				break
			}
		}
		if n == 0 {
			break
		}
	}
	if h == 0 && lo < 1<<53 && 0 <= scale && int(scale) < len(pow10) {
		v = float64(lo) / pow10[scale]
		f = float32(v)
		if halfway(v) {
			f = besideHalfway(v, lo, int(scale))
		}
		kind = rounding(f, v, lo, int(scale))
		if negative {
			f, v = -f, -v
		}
		return f, v, kind
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], h)
	binary.BigEndian.PutUint64(b[8:], lo)
	return fromBig(new(big.Int).SetBytes(b[:]), negative, scale)
}

// f32FromDecimalBytes is f32FromDecimal of a number of any length, in big-endian
// two's complement.
func f32FromDecimalBytes(b []byte, scale int32) (f float32, v float64, kind numberKind) {
	negative := len(b) > 0 && b[0] >= 0x80
	if n := len(b) - 16; n <= 0 {
		var wide [16]byte
		if negative {
			wide = [16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
		}
		copy(wide[-n:], b)
		return f32FromDecimal(int64(binary.BigEndian.Uint64(wide[:])), binary.BigEndian.Uint64(wide[8:]), scale)
	}
	x := new(big.Int).SetBytes(b)
	if negative {
		x.Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))), x)
	}
	return fromBig(x, negative, scale)
}

// fromBig goes by way of the text, which is rounded once.
func fromBig(x *big.Int, negative bool, scale int32) (f float32, v float64, kind numberKind) {
	var text []byte
	if negative {
		text = append(text, '-')
	}
	text = append(x.Append(text, 10), 'e')
	return parseNumber(strconv.AppendInt(text, -int64(scale), 10))
}
