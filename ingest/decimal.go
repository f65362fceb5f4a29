package ingest

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// missing is the one NaN that stands for a missing cell.
var missing = math.Float32frombits(0x7fc00000)

// numberKind is what a cell's text turned out to be.
type numberKind uint8

const (
	notNumber  numberKind = iota
	exact                 // a number that the float32 equals
	inexact               // a number that the float32 approximates
	overflow              // a number too large for a float32
	blank                 // empty, or a spelling of missing
	nonFinite             // NaN or an infinity
	longNumber            // not decided: the fast path does not apply
)

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

var pow10Int = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// slack is how many bytes must follow a text in memory for scanDecimal.
const slack = 8

// scanDecimal reads the plain decimal number that begins at b[i] and returns the
// nearest float32, the number itself as a float64, and the index of the first
// byte after it. The number must be followed by a byte in b that is not a digit,
// and cap(b) be at least len(b)+slack. The kind is exact, inexact, or longNumber
// where parseNumber must decide.
func scanDecimal(b []byte, i int) (f float32, v float64, end int, kind numberKind) {
	sign := (uint32(b[i]^'-') - 1) >> 31 // 1 for '-', without a branch to mispredict
	i += int(sign)
	w, n := leading8(b, i)
	i += n
	digits, k := n, 0
	for n == 8 {
		var x uint64
		x, n = leading8(b, i)
		w = w*pow10Int[n] + x
		i += n
		digits += n
	}
	if b[i] == '.' {
		i++
		n = 8
		for n == 8 {
			var x uint64
			x, n = leading8(b, i)
			w = w*pow10Int[n] + x
			i += n
			k += n
		}
		digits += k
	}
	// Up to 19 digits w has not wrapped, and k is at most 19.
	if digits == 0 || digits > 19 || w >= 1<<53 {
		return 0, 0, i, longNumber
	}
	v = float64(w) / pow10[k] // both exact, so that v is the number rounded once
	f = float32(v)
	if halfway(v) {
		f = besideHalfway(v, w, k)
	}
	kind = rounding(f, v, w, k)
	f = math.Float32frombits(math.Float32bits(f) | sign<<31)
	v = math.Float64frombits(math.Float64bits(v) | uint64(sign)<<63)
	return f, v, i, kind
}

// halfway reports whether v, a normal float32 or between two of them, lies in the
// very middle of two. Rounding a number to the float64 v and v to a float32 gives
// the nearest float32 of the number unless it does: any other v is on the same
// side of the middle as the number.
func halfway(v float64) bool { return math.Float64bits(v)&(1<<29-1) == 1<<28 }

// besideHalfway is the float32 nearest to w / 10^k, whose nearest float64 v lies
// halfway between two.
func besideHalfway(v float64, w uint64, k int) float32 {
	down := float32(math.Float64frombits(math.Float64bits(v) &^ (1<<29 - 1)))
	switch r := math.FMA(v, pow10[k], -float64(w)); { // its sign is exact
	case r > 0:
		return down
	case r < 0:
		return math.Float32frombits(math.Float32bits(down) + 1)
	}
	return float32(v)
}

// rounding is the kind, exact or inexact, of w / 10^k, the nearest floats of which
// are f and v.
func rounding(f float32, v float64, w uint64, k int) numberKind {
	if float64(f) != v || k > 0 && math.FMA(v, pow10[k], -float64(w)) != 0 {
		return inexact
	}
	return exact
}

// leading8 reads up to eight digits at b[i] and returns their value and number.
// It takes all eight bytes at once: how many digits a number has is what
// branches mispredict.
func leading8(b []byte, i int) (uint64, int) {
	x := binary.LittleEndian.Uint64(b[i:i+8]) ^ 0x3030303030303030
	// The high bit of the lowest byte that is not 0 to 9, and perhaps of some above.
	other := (x + 0x7676767676767676 | x) & 0x8080808080808080
	n := bits.TrailingZeros64(other) &^ 7
	x <<= 64 - n // leading zeros in place of the rest
	x = (x * 2561) >> 8 & 0x00ff00ff00ff00ff
	x = (x * 6553601) >> 16 & 0x0000ffff0000ffff
	return (x * 42949672960001) >> 32, n / 8
}

// parseNumber reads a whole cell: a number, or a spelling of missing. v is the
// number as a float64, for the relative error.
func parseNumber(cell []byte) (f float32, v float64, kind numberKind) {
	cell = trim(cell)
	if !isDecimal(cell) {
		return missing, 0, missingKind(cell)
	}
	s := string(cell)
	f64, err := strconv.ParseFloat(s, 32)
	if err != nil { // the syntax is right: out of range
		return 0, 0, overflow
	}
	f = float32(f64)
	v, err = strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, 0, overflow
	}
	if float64(f) != v || !equalsText(f, cell) {
		return f, v, inexact
	}
	return f, v, exact
}

// isDecimal reports whether b is [+-] digits [. digits] [e [+-] digits], with at
// least one digit before the exponent.
func isDecimal(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	n := leadingDigits(b)
	digits := n
	b = b[n:]
	if len(b) > 0 && b[0] == '.' {
		n = leadingDigits(b[1:])
		digits += n
		b = b[1+n:]
	}
	if digits == 0 {
		return false
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		n = leadingDigits(b)
		if n == 0 {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}

func leadingDigits(b []byte) int {
	n := 0
	for n < len(b) && b[n]-'0' < 10 {
		n++
	}
	return n
}

// equalsText reports whether f is exactly the decimal number in the text, which
// isDecimal has accepted and f approximates.
func equalsText(f float32, text []byte) bool {
	var exp int
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.Atoi(string(text[i+1:])); err != nil || exp < -1<<30 || exp > 1<<30 {
			return !bytes.ContainsAny(text[:i], "123456789") // zero, whatever the exponent
		}
		text = text[:i]
	}
	whole, frac, _ := bytes.Cut(bytes.TrimLeft(text, "+-"), []byte("."))
	exp -= len(frac)
	digits := append(bytes.Clone(whole), frac...)
	n := len(digits)
	digits = bytes.TrimRight(digits, "0")
	exp += n - len(digits)
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) == 0 {
		return f == 0
	}
	// The smallest float32 is 2^-149: it has 149 decimals. No float32 has more
	// than 112 significant digits, nor ends in more than 38 zeros.
	if len(digits) > 112 || exp < -149 || exp > 38 {
		return false
	}
	w, _ := new(big.Int).SetString(string(digits), 10)
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
	x := new(big.Rat)
	if exp < 0 {
		x.SetFrac(w, p)
	} else {
		x.SetInt(w.Mul(w, p))
	}
	return x.Cmp(new(big.Rat).SetFloat64(math.Abs(float64(f)))) == 0
}

// missingKind tells spellings of missing and of infinity from other text.
func missingKind(cell []byte) numberKind {
	if len(cell) == 0 {
		return blank
	}
	if len(cell) > len("-infinity") {
		return notNumber
	}
	var low [len("-infinity")]byte
	for i, c := range cell {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	switch string(low[:len(cell)]) {
	case "na", "n/a", "#n/a", "<na>", "nat", "null", "none", `\n`, "-", ".":
		return blank
	case "nan", "-nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity":
		return nonFinite
	}
	return notNumber
}

// trim cuts blanks and tabs off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
