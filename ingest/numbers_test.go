package ingest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkRat compares a conversion with exact arithmetic.
func checkRat(t require.TestingT, x *big.Rat, f float32, v float64, kind numberKind) {
	want, same := round32(x)
	if math.IsInf(float64(want), 0) {
		require.Equal(t, overflow, kind, x)
		return
	}
	require.Equal(t, same, kind == exact, x)
	require.Equal(t, !same, kind == inexact, x)
	require.Equal(t, math.Float32bits(want), math.Float32bits(f), "%s", x)
	want64, _ := x.Float64()
	require.Equal(t, math.Float64bits(want64), math.Float64bits(v), "%s", x)
}

func kindOf(same bool) numberKind {
	if same {
		return exact
	}
	return inexact
}

func checkIntegers(t require.TestingT, u uint64) {
	f, same := f32FromUint64(u)
	checkRat(t, new(big.Rat).SetInt(new(big.Int).SetUint64(u)), f, float64(u), kindOf(same))
	f, same = f32FromInt64(int64(u))
	checkRat(t, new(big.Rat).SetInt64(int64(u)), f, float64(int64(u)), kindOf(same))
}

func TestIntegersToFloat32(t *testing.T) {
	for _, u := range []uint64{0, 1, 1<<24 - 1, 1 << 24, 1<<24 + 1, 1<<24 + 2, 1<<24 + 3, 1<<25 + 2, 1<<25 + 6, 1<<53 + 1, 1<<62 + 1<<38, 1<<62 + 1<<38 + 1, 1<<62 + 3<<38, 1<<62 + 3<<38 - 1,
		1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<63 + 1<<39, 1<<63 + 1<<39 + 1, 1<<64 - 1<<39, 1<<64 - 1<<39 - 1, 1<<64 - 1} {
		checkIntegers(t, u)
		checkIntegers(t, -u)
	}
	rapid.Check(t, func(t *rapid.T) {
		// Near halfway points, where a first rounding to float64 would tip the second.
		u := rapid.Uint64Range(1<<23, 1<<24-1).Draw(t, "significand")<<1 | 1
		shift := rapid.IntRange(0, 39).Draw(t, "shift")
		u <<= shift
		checkIntegers(t, u+rapid.Uint64Range(0, 2).Draw(t, "beside")-1)
		checkIntegers(t, rapid.Uint64().Draw(t, "any")>>rapid.IntRange(0, 63).Draw(t, "bits"))
	})
}

func TestFloat64ToFloat32(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, 0.1, -0.1, 16777217, math.MaxFloat32, 3.4028235677973366e38, math.Nextafter(3.4028235677973366e38, 0), -1e39, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-45, 7.006492321624085e-46, 7.1e-46, 1e-300} {
		f, kind := f32FromFloat64(v)
		if v == 0 {
			require.Equal(t, exact, kind)
			require.Equal(t, math.Float32bits(float32(math.Copysign(0, v))), math.Float32bits(f))
			continue
		}
		want, same := round32(new(big.Rat).SetFloat64(v))
		if math.IsInf(float64(want), 0) {
			require.Equal(t, overflow, kind, v)
			continue
		}
		require.Equal(t, kindOf(same), kind, v)
		require.Equal(t, math.Float32bits(float32(math.Copysign(float64(want), v))), math.Float32bits(f), v)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		f, kind := f32FromFloat64(v)
		require.Equal(t, nonFinite, kind)
		require.Equal(t, uint32(0x7fc00000), math.Float32bits(f))
	}
}

// checkDecimal128 compares both conversions of unscaled / 10^scale with exact arithmetic.
func checkDecimal128(t require.TestingT, unscaled *big.Int, scale int32) {
	x := new(big.Rat).SetInt(unscaled)
	p := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil))
	if scale < 0 {
		x.Mul(x, p)
	} else {
		x.Quo(x, p)
	}
	wrapped := new(big.Int).And(unscaled, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)))
	b := wrapped.FillBytes(make([]byte, 32))
	f, v, kind := f32FromDecimalBytes(b, scale)
	checkRat(t, x, f, v, kind)
	if unscaled.BitLen() < 128 {
		f, v, kind = f32FromDecimalBytes(b[16:], scale)
		checkRat(t, x, f, v, kind)
		hi, lo := new(big.Int).Rsh(wrapped, 64), wrapped.Uint64()
		f, v, kind = f32FromDecimal(int64(hi.Uint64()), lo, scale)
		checkRat(t, x, f, v, kind)
	}
	if unscaled.BitLen() < 64 {
		f, v, kind = f32FromDecimalBytes(b[24:], scale)
		checkRat(t, x, f, v, kind)
	}
}

func TestDecimalsToFloat32(t *testing.T) {
	f, _, kind := f32FromDecimalBytes(nil, 2)
	require.Zero(t, f)
	require.Equal(t, exact, kind)
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
	for _, scale := range []int32{0, 1, 2, 4, 8, 18, 19, 20, 38, 60, 76, -1, -2, -20, -30} {
		for _, v := range []int64{0, 1, -1, 33, -33, 10, 100, 12345, 16777217, 1e18, math.MaxInt64, math.MinInt64, 123450000000000000, 33554433} {
			checkDecimal128(t, big.NewInt(v), scale)
		}
		checkDecimal128(t, most, scale)
		checkDecimal128(t, new(big.Int).Not(most), scale) // the least
	}
	// 1 + 2^-24 is halfway; the digits after it decide.
	for text, scale := range map[string]int32{"1000000059604644775390625": 24, "10000000596046447753906250000000000001": 37, "10000000596046447753906249999999999999": 37, "100000005960464477539062500000000000000000000001": 47} {
		x, _ := new(big.Int).SetString(text, 10)
		checkDecimal128(t, x, scale)
		checkDecimal128(t, x.Neg(x), scale)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 15).Draw(t, "bytes"))
		x.Mul(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(rapid.IntRange(0, 2).Draw(t, "zeros"))), nil))
		if rapid.Bool().Draw(t, "negative") {
			x.Neg(x)
		}
		checkDecimal128(t, x, int32(rapid.IntRange(-10, 40).Draw(t, "scale")))
	})
}

// written writes a decimal text (digits with a point) as people do.
type written struct {
	style  numberStyle
	text   string // what is written
	number string // what it means, for big.Rat
}

func drawWritten(t *rapid.T) written {
	s := rapid.SampledFrom(numberStyles[:]).Draw(t, "style")
	whole := rapid.StringMatching(`(0|[1-9][0-9]{0,14})`).Draw(t, "whole")
	frac := rapid.StringMatching(`([0-9]{1,12})?`).Draw(t, "fraction")
	text, number := whole, whole
	if s.group != 0 {
		kinds := map[byte][]string{' ': blanks[:4], '\'': apostrophes, ',': {","}, '.': {"."}}[s.group]
		var b strings.Builder
		for i := range whole {
			if i > 0 && (len(whole)-i)%3 == 0 {
				b.WriteString(rapid.SampledFrom(kinds).Draw(t, "separator"))
			}
			b.WriteByte(whole[i])
		}
		text = b.String()
	}
	if frac != "" {
		number += "." + frac
		if s.comma {
			text += "," + frac
		} else {
			text += "." + frac
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "ending") {
	case 0:
		i := rapid.IntRange(0, 4).Draw(t, "letter")
		text, number = text+string("KkMBT"[i]), number+[]string{"e3", "e3", "e6", "e9", "e12"}[i]
	case 1:
		s.percent = true
		text, number = text+rapid.SampledFrom([]string{"%", " %"}).Draw(t, "percent"), number+"e-2"
	}
	if !s.percent && rapid.Bool().Draw(t, "money") {
		s.currency = rapid.SampledFrom(currencySigns).Draw(t, "currency")
		blank := rapid.SampledFrom([]string{"", " ", "\u00a0"}).Draw(t, "blank")
		if rapid.Bool().Draw(t, "before") {
			text = s.currency + blank + text
		} else {
			text += blank + s.currency
		}
	}
	switch rapid.IntRange(0, 6).Draw(t, "sign") {
	case 0:
		text, number = "-"+text, "-"+number
	case 1:
		text, number = "\u2212"+text, "-"+number
	case 2:
		text, number = "("+text+")", "-"+number
	case 3:
		text, number = text+"-", "-"+number
	case 4:
		text = "+" + text
	}
	return written{s, text, number}
}

func TestNumbersAsPeopleWriteThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWritten(t)
		var buf []byte
		f, v, kind, reason := w.style.read(&buf, []byte(w.text))
		require.Empty(t, reason, "%q in %s", w.text, &w.style)
		want, wantKind := nearest32(t, w.number)
		require.Equal(t, wantKind, kind, w.text)
		require.Equal(t, math.Float32bits(want), math.Float32bits(f), w.text)
		v64, err := strconv.ParseFloat(w.number, 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(v64), math.Float64bits(v), w.text)
		// Its own style is among those that the sample leaves.
		var s numberSample
		number, _ := s.add([]byte(w.text))
		require.True(t, number, w.text)
		bare := w.style
		bare.percent, bare.currency = false, ""
		for i, o := range numberStyles {
			if o == bare {
				require.Zero(t, s.refuted>>i&1, w.text)
			}
		}
		require.Equal(t, w.style.percent, s.percent)
		require.Equal(t, w.style.currency, s.currency)
	})
	rapid.Check(t, func(t *rapid.T) { // no text panics
		text := []byte(rapid.StringOf(rapid.SampledFrom([]rune("0123456789.,' -+()%$€KMe\u00a0−’EUR"))).Draw(t, "text"))
		var buf []byte
		var s numberSample
		number, _ := s.add(text)
		for _, style := range numberStyles {
			style.percent, style.currency = s.percent, s.currency
			_, _, kind, reason := style.read(&buf, text)
			require.Equal(t, kind == notNumber, reason != "")
			require.True(t, number || kind == notNumber || kind == blank, "%q", text)
		}
	})
}

func TestNumberStyles(t *testing.T) {
	for _, c := range []struct {
		style numberStyle
		text  string
		want  string // a decimal number, or what is wrong
	}{
		{numberStyle{}, "12.5K", "12500"}, {numberStyle{}, "1.1M", "1100000"}, {numberStyle{}, "2.5B", "2500000000"}, {numberStyle{}, "1T", "1000000000000"}, {numberStyle{}, "12.5 k", "12500"},
		{numberStyle{percent: true}, "3.3%", "0.033"}, {numberStyle{percent: true}, "-0.07 %", "-0.0007"}, {numberStyle{percent: true}, "0", "0"}, {numberStyle{percent: true}, "(3.3%)", "-0.033"}, {numberStyle{percent: true}, "(3.3)%", badNumber},
		{numberStyle{percent: true}, "3.3", noPercent}, {numberStyle{}, "3.3%", somePercent},
		{numberStyle{group: ','}, "4,787,699", "4787699"}, {numberStyle{group: ','}, "1,234.5", "1234.5"}, {numberStyle{group: ','}, "12,34,567.8", "1234567.8"}, {numberStyle{group: ','}, "999", "999"}, {numberStyle{group: ','}, "1234567.8", "1234567.8"},
		{numberStyle{comma: true, group: '.'}, "1.234,5", "1234.5"}, {numberStyle{comma: true, group: '.'}, "1.234", "1234"}, {numberStyle{comma: true}, "1,5e3", "1500"}, {numberStyle{comma: true}, ",5", "0.5"},
		{numberStyle{group: ' '}, "1 234 567.8", "1234567.8"}, {numberStyle{comma: true, group: ' '}, "1\u202f234\u00a0567,8", "1234567.8"}, {numberStyle{group: '\''}, "1'234’567.8", "1234567.8"},
		{numberStyle{currency: "$"}, "$12.5", "12.5"}, {numberStyle{currency: "$"}, "-$12.5", "-12.5"}, {numberStyle{currency: "$"}, "$-12.5", "-12.5"}, {numberStyle{currency: "$"}, "($12.5)", "-12.5"}, {numberStyle{currency: "$"}, "$(12.5)", "-12.5"}, {numberStyle{currency: "$"}, "$1.2M", "1200000"}, {numberStyle{currency: "$"}, "7", "7"},
		{numberStyle{currency: "EUR"}, "EUR 12.5", "12.5"}, {numberStyle{currency: "€"}, "12.5 €", "12.5"}, {numberStyle{currency: "US$"}, "US$ 12.5", "12.5"},
		{numberStyle{currency: "€"}, "$12.5", "is in $, while this column is in €"}, {numberStyle{}, "$12.5", "is in $, while the first numbers"},
		{numberStyle{}, "5-", "-5"}, {numberStyle{}, "+5", "5"}, {numberStyle{}, "\u22125", "-5"}, {numberStyle{}, "(5)", "-5"}, {numberStyle{}, " 5 ", "5"}, {numberStyle{}, "(-5)", badNumber}, {numberStyle{}, "-5-", badNumber}, {numberStyle{}, "--5", badNumber}, {numberStyle{}, "(5", badNumber}, {numberStyle{}, "-(5)", badNumber},
		{numberStyle{}, "1,234", "is not written like the numbers of this column (plain)"}, {numberStyle{comma: true}, "1.5", "is not written like"}, {numberStyle{group: ','}, "1,23", "is not written like"}, {numberStyle{group: ','}, "0,123", "is not written like"},
		{numberStyle{group: ','}, "1,2345", "is not written like"}, {numberStyle{group: ','}, "1,,234", badNumber}, {numberStyle{group: ','}, "12,345,67", badNumber}, {numberStyle{group: ','}, "1,234.567,8", badNumber}, {numberStyle{group: ','}, "1234,567,890", badNumber},
		{numberStyle{}, "5m", badNumber}, {numberStyle{}, "5MM", badNumber}, {numberStyle{}, "5K%", badNumber}, {numberStyle{}, "1e3K", badNumber}, {numberStyle{}, "5%%", badNumber}, {numberStyle{}, "$5%", badNumber}, {numberStyle{}, "$€5", badNumber}, {numberStyle{}, "K", badNumber}, {numberStyle{}, "%", badNumber},
		{numberStyle{}, "$", badNumber}, {numberStyle{}, "()", badNumber}, {numberStyle{}, "5 XYZ", badNumber}, {numberStyle{}, "2013-02-08", badNumber}, {numberStyle{}, "09:30", badNumber}, {numberStyle{}, "1e", badNumber}, {numberStyle{}, "1e+", badNumber}, {numberStyle{}, ".", ""}, {numberStyle{}, "n/a", ""}, {numberStyle{comma: true}, "", ""},
	} {
		var buf []byte
		f, _, kind, reason := c.style.read(&buf, []byte(c.text))
		switch {
		case c.want == "":
			require.Equal(t, blank, kind, c.text)
		case kind == notNumber:
			require.Contains(t, reason, c.want, c.text)
		default:
			want, wantKind := nearest32(t, c.want)
			require.Equal(t, wantKind, kind, c.text)
			require.Equal(t, math.Float32bits(want), math.Float32bits(f), c.text)
		}
	}
	var buf []byte
	_, _, kind, _ := new(numberStyle).read(&buf, []byte("3.5e26T"))
	require.Equal(t, notNumber, kind)
	_, _, kind, _ = new(numberStyle).read(&buf, []byte(strings.Repeat("9", 27)+"T"))
	require.Equal(t, overflow, kind)
}

func TestFindNumberStyle(t *testing.T) {
	for _, c := range []struct {
		columns            [][]string
		decimal, thousands string
		want               []string // "?" is open
	}{
		{columns: [][]string{{"1.5", "2"}}, want: []string{"plain"}},
		{columns: [][]string{{"1.234", "2.345"}}, want: []string{"plain"}}, // three decimals are no thousands
		{columns: [][]string{{"1,234", "2,345"}}, want: []string{"?"}},
		{columns: [][]string{{"1,234", "0,345"}}, want: []string{"decimal comma"}},
		{columns: [][]string{{"1,234", "12,34"}}, want: []string{"decimal comma"}},
		{columns: [][]string{{"1,234", "1234,567"}}, want: []string{"decimal comma"}},
		{columns: [][]string{{"4,787,699", "6189026.0000"}}, want: []string{"commas between thousands"}},
		{columns: [][]string{{"1,234", "1,234.5"}}, want: []string{"commas between thousands"}},
		{columns: [][]string{{"1,234", "1.5"}}, want: []string{"commas between thousands"}},
		{columns: [][]string{{"1.234", "1.234,5"}}, want: []string{"decimal comma, points between thousands"}},
		{columns: [][]string{{"1.234.567"}}, want: []string{"decimal comma, points between thousands"}},
		{columns: [][]string{{"1 234", "5"}}, want: []string{"blanks between thousands"}},
		{columns: [][]string{{"1'234,5"}}, want: []string{"decimal comma, apostrophes between thousands"}},
		{columns: [][]string{{"3.3%", "-0.1%"}}, want: []string{"percent, divided by 100"}},
		{columns: [][]string{{"$5", "€6"}}, want: []string{"in $"}},
		{columns: [][]string{{"1,234"}, {"1.5"}}, want: []string{"commas between thousands", "plain"}}, // the others decide
		{columns: [][]string{{"1,234"}, {"1.234"}}, want: []string{"?", "plain"}},
		{columns: [][]string{{"1.234"}, {"12,5"}}, want: []string{"decimal comma, points between thousands", "decimal comma"}},
		{columns: [][]string{{"1,234"}, {"12,5"}}, want: []string{"decimal comma", "decimal comma"}},
		{columns: [][]string{{"1,234"}, {"12,5"}, {"12.5"}}, want: []string{"?", "decimal comma", "plain"}},
		{columns: [][]string{{"1,234"}}, decimal: "point", want: []string{"commas between thousands"}},
		{columns: [][]string{{"1,234"}}, decimal: "comma", want: []string{"decimal comma"}},
		{columns: [][]string{{"1,234"}}, thousands: ",", want: []string{"commas between thousands"}},
		{columns: [][]string{{"1,234"}}, thousands: "none", want: []string{"decimal comma"}},
		{columns: [][]string{{"1.234"}}, thousands: ".", want: []string{"decimal comma, points between thousands"}},
		{columns: [][]string{{"1.234"}}, decimal: ",", want: []string{"decimal comma, points between thousands"}},
		{columns: [][]string{{"12"}}, thousands: "comma", want: []string{"commas between thousands"}}, // for rows to come
		{columns: [][]string{{"1.5"}}, decimal: "comma", want: []string{"decimal comma"}},             // Read stops at the cell
		{columns: [][]string{{"1.5", "1,5"}}, want: []string{"plain"}},                                // the first cells win, Read stops at the other
	} {
		options, err := numberOptions(c.decimal, c.thousands)
		require.NoError(t, err)
		samples := make([]numberSample, len(c.columns))
		for i, cells := range c.columns {
			for _, text := range cells {
				var one numberSample
				number, _ := one.add([]byte(text))
				require.True(t, number, text)
				samples[i].merge(&one)
			}
		}
		styles, open := stylesOf(samples, func(int) bool { return true }, options)
		for i, want := range c.want {
			require.Equal(t, want == "?", open[i], c)
			if want != "?" {
				require.Equal(t, want, styles[i].String(), c)
			}
		}
	}
	for _, o := range [][2]string{{"dot", ""}, {"", "x"}, {"comma", ","}, {".", "point"}} {
		require.Error(t, CheckNumberFormat(o[0], o[1]), o)
	}
	var s numberSample
	for text, want := range map[string]bool{"5M": true, "12K": true, "1.5M": false, "$5M": false, "5": false} {
		number, lettered := s.add([]byte(text))
		require.True(t, number, text)
		require.Equal(t, want, lettered, text)
	}
}

func BenchmarkNumberStyles(b *testing.B) {
	for _, c := range []struct {
		style numberStyle
		text  string
	}{{numberStyle{}, "1234.56"}, {numberStyle{group: ','}, "4,787,699"}, {numberStyle{comma: true}, "1234,56"}, {numberStyle{percent: true}, "3.37%"}, {numberStyle{currency: "$"}, "$1.25M"}} {
		b.Run(c.text, func(b *testing.B) {
			var buf []byte
			for b.Loop() {
				c.style.read(&buf, []byte(c.text))
			}
		})
	}
	b.Run("decimal128", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			f32FromDecimal(0, r.Uint64N(1e6)*1e12, 18)
		}
	})
	b.Run("decimal128/long", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			f32FromDecimal(int64(r.Uint64N(1000)), r.Uint64(), 18)
		}
	})
}
