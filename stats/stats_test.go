package stats_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/stats"
)

// exact computes the statistics in two passes with numbers of 300 bits.
func exact(values []float64) (mean, m2 float64) {
	n := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	sum := n(0)
	for _, v := range values {
		sum.Add(sum, n(v))
	}
	bigMean := sum.Quo(sum, n(float64(len(values))))
	squares := n(0)
	for _, v := range values {
		d := n(v)
		d.Sub(d, bigMean)
		squares.Add(squares, d.Mul(d, d))
	}
	mean, _ = bigMean.Float64()
	m2, _ = squares.Float64()
	return mean, m2
}

// near is closeness relative to the size of the values, since a mean may be 0 though they are not.
func near(t require.TestingT, want, got, scale float64, what string) {
	if d := math.Abs(want - got); d > 1e-12*(math.Abs(want)+scale) {
		require.Failf(t, "too far off", "%s is %v, must be %v", what, got, want)
	}
}

// In pieces or at once, values of any size around any offset give what two exact passes give.
func TestMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.SampledFrom([]float64{0, 1, -300, 1e8, 1e30}).Draw(t, "offset")
		spread := rapid.SampledFrom([]float64{0, 1e-6, 1, 1e10, 1e30}).Draw(t, "spread")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var whole, merged stats.Moments
		var values []float64
		for range rapid.IntRange(1, 6).Draw(t, "pieces") {
			var piece stats.Moments
			for range rapid.IntRange(0, 200).Draw(t, "values") {
				v := float64(float32(offset + spread*rng.NormFloat64()))
				values = append(values, v)
				piece.Add(v)
				whole.Add(v)
			}
			merged.Merge(&piece)
		}
		if len(values) == 0 {
			require.Zero(t, merged)
			require.True(t, math.IsNaN(merged.Std()))
			return
		}
		least, most, size := values[0], values[0], 0.0
		for _, v := range values {
			least, most, size = min(least, v), max(most, v), max(size, math.Abs(v))
		}
		mean, m2 := exact(values)
		for _, m := range []stats.Moments{whole, merged} {
			require.EqualValues(t, len(values), m.N)
			require.Equal(t, [2]float64{least, most}, [2]float64{m.Min, m.Max})
			near(t, mean, m.Mean, size, "mean")
			near(t, math.Sqrt(m2/float64(m.N)), m.Std(), size*1e-2, "deviation")
		}
	})
}

func TestMergeIsTheFormula(t *testing.T) {
	a, b := stats.Moments{N: 3, Mean: 1.1, M2: 0.3, Min: -1, Max: 2}, stats.Moments{N: 4, Mean: -0.7, M2: 0.9, Min: -3, Max: 1}
	got := a
	got.Merge(&b)
	d := b.Mean - a.Mean
	require.Equal(t, stats.Moments{N: 7, Mean: a.Mean + d*4/7, M2: a.M2 + b.M2 + d*d*3*4/7, Min: -3, Max: 2}, got)
	got.Merge(&stats.Moments{})
	require.EqualValues(t, 7, got.N)
	var none stats.Moments
	none.Merge(&a)
	require.Equal(t, a, none)
}

func TestStandardizer(t *testing.T) {
	columns := make([]stats.Moments, 4) // plain, constant, one value, none
	for _, v := range []float64{1, 2, 3, 6} {
		columns[0].Add(v)
		columns[1].Add(5)
	}
	columns[2].Add(7)
	s := stats.NewStandardizer(columns)
	require.Equal(t, []float64{3, 5, 7, 0}, s.Mean)
	require.Equal(t, []float64{math.Sqrt(3.5), 1, 1, 1}, s.Std)

	missing := math.Float32frombits(0x7fc00000)
	cells := []float32{1, 5, 7, 4, 6, 6, missing, -4, missing, missing, 9, missing, 8, 8}
	before := append([]float32{}, cells...)
	s.Apply(cells)
	sd := math.Sqrt(3.5)
	want := []float32{float32(-2 / sd), 0, 0, 4, float32(3 / sd), 1, missing, -4, missing, missing, 2, missing, 8, 8}
	for i := range want {
		require.Equal(t, math.Float32bits(want[i]), math.Float32bits(cells[i]), "cell %d", i)
	}
	s.Invert(cells)
	for i := range before {
		if before[i] != before[i] {
			require.Equal(t, uint32(0x7fc00000), math.Float32bits(cells[i]))
			continue
		}
		require.InDelta(t, before[i], cells[i], 1e-6)
	}
	stats.NewStandardizer(nil).Apply(cells)
}
