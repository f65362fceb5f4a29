package format_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
)

func TestCodes(t *testing.T) {
	for _, n := range []int{0, 1, 2, 300, format.MaxTexts} {
		for _, v := range []float32{-1, 0, 1, 2, 299, 300, 301, 1<<24 - 2, 1<<24 - 1, 1 << 24, 1<<24 + 2, 1 << 40, math.MaxFloat32} {
			require.Equal(t, v >= 0 && float64(v) < float64(n), format.IsCode(v, n), "%g of %d", v, n)
		}
		for _, bits := range []uint32{1 << 31, 1, 0x3f800001, 0x7f800000, 0xff800000, format.MissingBits, 0x3effffff} {
			require.False(t, format.IsCode(math.Float32frombits(bits), n), "%08x of %d", bits, n)
		}
	}
}

func TestCheckTexts(t *testing.T) {
	require.NoError(t, format.CheckTexts(nil))
	require.NoError(t, format.CheckTexts([]string{"\x00", "A", "AA", strings.Repeat("b", format.MaxText), "é"}))
	for what, texts := range map[string][]string{
		"is empty":            {""},
		"is not behind":       {"B", "A"},
		"is not behind \"A\"": {"A", "A"},
		"has 65536 bytes":     {strings.Repeat("b", format.MaxText+1)},
		"is not valid UTF-8":  {"a", "b\xff"},
	} {
		require.ErrorContains(t, format.CheckTexts(texts), what)
	}
}

// TestAttributes makes attributes of any values, and compares what they say.
func TestAttributes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.SampledFrom([]string{"", "", "A", "AA", "IT", "é", " "})).Draw(t, "texts")
		a := format.NewText("a", texts)
		require.NoError(t, a.Check())
		for i, want := range texts {
			got, ok := a.Text(i)
			require.Equal(t, want, got)
			require.Equal(t, want != "", ok)
			require.True(t, math.IsNaN(a.Number(i)))
		}
		numbers := rapid.SliceOf(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(1), math.Inf(-1)})).Draw(t, "numbers")
		b := format.NewNumber("b", numbers)
		require.NoError(t, b.Check())
		for i, want := range numbers {
			_, ok := b.Text(i)
			require.False(t, ok)
			bits := math.Float64bits(want)
			if math.IsNaN(want) || math.IsInf(want, 0) {
				bits = format.NoNumber
			}
			require.Equal(t, bits, math.Float64bits(b.Number(i)))
		}
		if len(texts) == len(numbers) {
			got, err := format.DecodeAttributes(format.AppendAttributes(nil, []*format.Attribute{a, b}), 0, len(texts))
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.Equal(t, a, got[0])
			require.Equal(t, format.Number, got[1].Kind)
		}
	})
	for what, name := range map[string]string{"no name": "", "256 bytes": strings.Repeat("n", 256), "not valid UTF-8": "\xff"} {
		require.ErrorContains(t, format.NewText(name, nil).Check(), what)
	}
	require.ErrorContains(t, format.NewText("a", []string{"\xff"}).Check(), `attribute "a": text "\xff" is not valid UTF-8`)
}
