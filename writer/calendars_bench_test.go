package writer

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Many tickers with times of their own: what choosing calendars costs must not grow with the square of their number.
func BenchmarkCalendars(b *testing.B) {
	for _, n := range []int{1000, 10_000, 40_000} {
		b.Run(fmt.Sprintf("lists=%d", n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			var l lists
			for range n {
				times := make([]int64, 20)
				for k := range times {
					times[k] = r.Int64N(1 << 24)
				}
				slices.Sort(times)
				times = slices.Compact(times)
				l.all = append(l.all, list{start: int64(len(l.times)), rows: int64(len(times)), first: times[0], last: times[len(times)-1]})
				for _, t := range times {
					l.times = binary.LittleEndian.AppendUint64(l.times, uint64(t))
				}
			}
			for b.Loop() {
				if _, err := l.calendars(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/list")
		})
	}
}
