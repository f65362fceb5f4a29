package stats_test

import (
	"fmt"

	"github.com/wstore/wstore/stats"
)

func Example() {
	var first, second stats.Moments
	for _, v := range []float64{1, 2} {
		first.Add(v)
	}
	for _, v := range []float64{3, 6} {
		second.Add(v)
	}
	first.Merge(&second)
	fmt.Printf("%d values, mean %g, deviation %.3f\n", first.N, first.Mean, first.Std())

	cells := []float32{3, 6}
	stats.NewStandardizer([]stats.Moments{first}).Apply(cells)
	fmt.Printf("%.3f\n", cells)
	// Output:
	// 4 values, mean 3, deviation 1.871
	// [0.000 1.604]
}
