package ingest

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// round32 rounds with exact arithmetic, and says whether it need not.
func round32(x *big.Rat) (f float32, same bool) {
	f, _ = x.Float32() // which calls 2^-151 exact
	return f, !math.IsInf(float64(f), 0) && new(big.Rat).SetFloat64(float64(f)).Cmp(x) == 0
}

// nearest32 rounds a decimal number to float32 with exact arithmetic, and says
// whether it had to.
func nearest32(t require.TestingT, text string) (f float32, kind numberKind) {
	x, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	f, same := round32(x)
	if math.IsInf(float64(f), 0) {
		return f, overflow
	}
	if f == 0 && strings.HasPrefix(text, "-") {
		f = float32(math.Copysign(0, -1)) // big.Rat has no -0
	}
	if same {
		return f, exact
	}
	return f, inexact
}

// checkDecimal compares both paths with exact arithmetic.
func checkDecimal(t require.TestingT, text string) {
	want, wantKind := nearest32(t, text)
	f, v, kind := parseNumber([]byte(text))
	require.Equal(t, wantKind, kind, text)
	if kind == overflow {
		return
	}
	require.Equal(t, math.Float32bits(want), math.Float32bits(f), text)
	v64, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.Equal(t, math.Float64bits(v64), math.Float64bits(v), text)

	b := slices.Grow(append([]byte(text), ','), slack)
	f, v, end, kind := scanDecimal(b, 0)
	if kind == longNumber || end != len(text) {
		return
	}
	require.Equal(t, wantKind, kind, text)
	require.Equal(t, math.Float32bits(want), math.Float32bits(f), text)
	require.Equal(t, math.Float64bits(v64), math.Float64bits(v), text)
}

func TestDecimalHardCases(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "0.0", "-0.000", "1", "-1", "+1", "007", ".5", "5.", "-.5", "1e5", "1E+5", "1.5e-3",
		"16777216", "16777217", "16777218", "16777219", "-16777217", "33554434", "33554433", "25643711.0", "25643711.1",
		"16777217.0000000001", "16777216.9999999999", "16777217.00000001", "16777216.99999999",
		"0.1", "0.2", "0.3", "600000.41", "130583.99999999999", "139.7100067138672",
		"9007199254740991", "9007199254740992", "9007199254740993", "18446744073709551615", "18446744073709551616", "9999999999999999999",
		"1.00000005960464477539062", "1.000000059604644775390625", "1.0000000596046447753906250000000000000001",
		"1.00000017881393432617187499", "1.000000178813934326171875", "1.00000017881393432617187501",
		"3.4028235e38", "3.4028234663852886e38", "3.40282356e38", "3.40282357e38", "340282356779733661637539395458142568447", "340282356779733661637539395458142568448", "1e39", "-1e39", "1e400",
		"1.17549435e-38", "1.1754942e-38", "1.4e-45", "1.401298464324817e-45", "7e-46", "7.006492321624085e-46", "7.006492321624086e-46", "1e-50", "1e-400", "-1e-400",
		"0." + strings.Repeat("0", 44) + "1401298464324817", strings.Repeat("0", 50) + "1.5", "1" + strings.Repeat("0", 38), "1" + strings.Repeat("0", 39),
		"1.5" + strings.Repeat("0", 200), "1.5" + strings.Repeat("0", 200) + "1", "0e0", "0.0000000000000000001", "0.00000000000000000001",
	} {
		checkDecimal(t, text)
	}
	// Every float32 has a finite decimal: it must come back, and count as exact.
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if f != f || math.IsInf(float64(f), 0) {
			return
		}
		checkDecimal(t, strings.TrimRight(new(big.Float).SetFloat64(float64(f)).Text('f', 150), "0")+"0")
	})
}

func TestDecimalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Near a halfway point between two floats, cut or changed at any digit.
		f := math.Float32frombits(rapid.Uint32Range(0x30000000, 0x5a000000).Draw(t, "bits"))
		half := (float64(f) + float64(math.Nextafter32(f, math.MaxFloat32))) / 2
		text := strconv.FormatFloat(half, 'f', rapid.IntRange(0, 60).Draw(t, "decimals"), 64)
		checkDecimal(t, text)
		checkDecimal(t, "-"+text)
		checkDecimal(t, strconv.FormatFloat(half, 'g', rapid.IntRange(1, 20).Draw(t, "digits"), 64))
		if strings.Contains(text, ".") {
			checkDecimal(t, text+"1")
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		checkDecimal(t, rapid.StringMatching(`[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})(e[+-]?[0-9]{1,2})?`).Draw(t, "text"))
		checkDecimal(t, rapid.StringMatching(`-?[0-9]{1,9}(\.[0-9]{1,9})?`).Draw(t, "text"))
	})
}

func TestDecimalNeverReadsOtherText(t *testing.T) {
	for _, text := range []string{"0x10", "1_000", "1,234", "1.2.3", "1e", "1e+", "e5", "+", "1-2", "--1", "+-1", "1 2", "１", "1d5", "$5", "5%", "infin", "nanx", "1e5.5", "TRUE"} {
		_, _, kind := parseNumber([]byte(text))
		require.Equal(t, notNumber, kind, text)
	}
	for _, text := range []string{"", " ", "\t", "NA", "n/a", "#N/A", "<NA>", "NaT", "NULL", "null", "None", "-", "."} {
		f, _, kind := parseNumber([]byte(text))
		require.Equal(t, blank, kind, text)
		require.Equal(t, uint32(0x7fc00000), math.Float32bits(f))
	}
	for _, text := range []string{"NaN", "nan", " NaN ", "-nan", "Inf", "-inf", "+INF", "Infinity", "-infinity"} {
		f, _, kind := parseNumber([]byte(text))
		require.Equal(t, nonFinite, kind, text)
		require.Equal(t, uint32(0x7fc00000), math.Float32bits(f))
	}
	rapid.Check(t, func(t *rapid.T) { // no input panics
		text := rapid.SliceOf(rapid.SampledFrom([]byte("0123456789.-+eE ,nNaAiIfF"))).Draw(t, "text")
		parseNumber(text)
		scanDecimal(slices.Grow(append(text, '\n'), slack), 0)
	})
}

// A huge exponent must cost nothing.
func TestDecimalHugeExponent(t *testing.T) {
	for _, text := range []string{"1e-999999999999", "0e999999999999", "0e-999999999999"} {
		f, _, kind := parseNumber([]byte(text))
		require.Zero(t, math.Float32bits(f), text)
		require.Equal(t, text[0] == '0', kind == exact, text)
	}
	_, _, kind := parseNumber([]byte("1e999999999999"))
	require.Equal(t, overflow, kind)
}

func BenchmarkDecimal(b *testing.B) {
	for _, text := range []string{"5", "158168416", "-123.4567", "130583.99999999999", "0.00012345e-5"} {
		line := []byte(text + ",                ")
		b.Run(fmt.Sprintf("scan/%s", text), func(b *testing.B) {
			for b.Loop() {
				scanDecimal(line, 0)
			}
		})
		b.Run(fmt.Sprintf("parse/%s", text), func(b *testing.B) {
			for b.Loop() {
				parseNumber([]byte(text))
			}
		})
	}
}
