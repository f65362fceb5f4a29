package bench

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// dir holds the files, which are written once a run.
var dir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if dir, err = os.MkdirTemp("", "wstore-bench-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		return m.Run()
	}())
}

// panel returns a store of the given size, mapped, all pages in memory.
func panel(b *testing.B, tickers, rows, columns int) *reader.Store {
	b.Helper()
	path := filepath.Join(dir, strconv.Itoa(tickers)+"x"+strconv.Itoa(columns)+".wst")
	if _, err := os.Stat(path); err != nil {
		write(b, path, tickers, rows, columns)
	}
	s, err := reader.Open(path, nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	v, err := s.View()
	require.NoError(b, err)
	defer v.Release()
	for t := range s.Tickers() {
		cells, err := v.Series(t, 0)
		require.NoError(b, err)
		for i := 0; i < len(cells); i += 1024 {
			sink += cells[i]
		}
	}
	return s
}

var sink float32

func write(b *testing.B, path string, tickers, rows, columns int) {
	group := format.Group{Name: "features", DType: format.Float32}
	for c := range columns {
		group.Columns = append(group.Columns, format.Column{Name: "c" + strconv.Itoa(c)})
	}
	w, err := writer.Create(path, &format.Schema{Groups: []format.Group{group}}, nil)
	require.NoError(b, err)
	rng := rand.New(rand.NewPCG(1, 2))
	times, cells := make([]int64, rows), make([]float32, rows*columns)
	for t := range tickers {
		require.NoError(b, w.Begin("T"+strconv.Itoa(t)))
		for r := range times {
			times[r] = int64(86400 * (r + t%10))
		}
		for i := range cells {
			cells[i] = rng.Float32()
		}
		for i := range t % 50 { // an indicator's warm-up
			cells[i*columns] = format.Missing()
		}
		require.NoError(b, w.Append(times, []writer.Cells{{F32: cells}}))
	}
	require.NoError(b, w.Finish(context.Background(), nil))
}

const (
	tickers, rows, columns = 1000, 2500, 60 // 600 MB
	lookback               = 60
	batch                  = 256
	batches                = 1 << 9
)

// windows returns a query's windows, random numbers of them, and where each of those starts in its ticker's series.
func windows(b *testing.B, s *reader.Store, v *reader.View, inputs []string, order func(i, n int) int) (w *reader.Windows, ids []int, at [][]float32) {
	w, err := s.Windows(reader.Query{Inputs: inputs, Lookback: lookback})
	require.NoError(b, err)
	series := make([][]float32, len(s.Tickers()))
	for t := range series {
		series[t], err = v.Series(t, 0)
		require.NoError(b, err)
	}
	ids, at = make([]int, batch*batches), make([][]float32, batch*batches)
	for i := range ids {
		ids[i] = order(i, w.Len())
		pos := w.Locate(ids[i])
		at[i] = series[pos.Ticker][pos.First*columns:]
	}
	return w, ids, at
}

// times are those of one side's turns; a turn that was interrupted does not count much in their median.
type times []time.Duration

const turns = 1 << 20 // room that is made before anything is measured

func (t times) median() float64 {
	slices.Sort(t)
	return float64(t[len(t)/2])
}

// What a program does with a window.
const (
	nothing = iota
	first   // reads its first element
	window  // reads all of it
)

func use(x []float32, how int) float32 {
	switch how {
	case nothing:
		return float32(len(x))
	case first:
		return x[0]
	}
	sum := float32(0)
	for k := 0; k < len(x); k += 16 { // once a cache line
		sum += x[k]
	}
	return sum
}

// BenchmarkAt compares At with slicing a []float32 whose place is known.
func BenchmarkAt(b *testing.B) {
	s := panel(b, tickers, rows, columns)
	rng := rand.New(rand.NewPCG(3, 4))
	orders := map[string]func(i, n int) int{
		"random":     func(_, n int) int { return rng.IntN(n) },
		"sequential": func(i, _ int) int { return i },
	}
	for _, order := range []string{"random", "sequential"} {
		for reads, name := range []string{"nothing", "first", "window"} {
			b.Run(order+"/"+name, func(b *testing.B) {
				v, err := s.View()
				require.NoError(b, err)
				defer v.Release()
				w, ids, known := windows(b, s, v, nil, orders[order])
				v, err = w.View()
				require.NoError(b, err)
				defer v.Release()
				const block = 1 << 10
				at, slice := make(times, 0, turns), make(times, 0, turns)
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					from := n * block % len(ids)
					other := (from + len(ids)/2) % len(ids)
					sum := float32(0)
					start := time.Now()
					for _, i := range ids[from : from+block] {
						x, _ := v.At(i)
						sum += use(x, reads)
					}
					at = append(at, time.Since(start))
					start = time.Now()
					for _, p := range known[other : other+block] {
						sum += use(p[:lookback*columns:lookback*columns], reads)
					}
					slice = append(slice, time.Since(start))
					sink += sum
					n++
				}
				tAt, tSlice := at.median()/block, slice.median()/block
				b.ReportMetric(tAt, "ns/At")
				b.ReportMetric(tSlice, "ns/slice")
				b.ReportMetric(tAt-tSlice, "ns/extra")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkGather compares Gather of 256 windows with bare loops of copy in as many goroutines: of the same elements
// (same) and of whole windows (whole).
func BenchmarkGather(b *testing.B) {
	s := panel(b, tickers, rows, columns)
	names := s.Meta().Schema.Groups[0].Columns
	choose := func(from, n, step int) (inputs []string, first []int) {
		for c := from; len(first) < n; c += step {
			inputs, first = append(inputs, names[c].Name), append(first, c)
		}
		return inputs, first
	}
	for _, c := range []struct {
		name          string
		from, n, step int
	}{
		{"all60", 0, 60, 1},
		{"20together", 10, 20, 1},
		{"5together", 10, 5, 1},
		{"20scattered", 0, 20, 3},
		{"1", 7, 1, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			inputs, places := choose(c.from, c.n, c.step)
			v, err := s.View()
			require.NoError(b, err)
			defer v.Release()
			rng := rand.New(rand.NewPCG(5, 6))
			w, ids, known := windows(b, s, v, inputs, func(_, n int) int { return rng.IntN(n) })
			x, out := make([]float32, batch*lookback*c.n), make([]float32, batch*lookback*columns)
			copySame := func(src, dst []float32) {
				switch {
				case c.n == columns:
					copy(dst[:lookback*columns], src)
				case c.step == 1:
					for r := range lookback {
						copy(dst[r*c.n:(r+1)*c.n], src[r*columns+c.from:])
					}
				default:
					for r := range lookback {
						row, to := src[r*columns:(r+1)*columns], dst[r*c.n:(r+1)*c.n]
						for k, p := range places {
							to[k] = row[p]
						}
					}
				}
			}
			copyWhole := func(src, dst []float32) { copy(dst[:lookback*columns], src) }
			gather, same, whole := make(times, 0, turns), make(times, 0, turns), make(times, 0, turns)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				of := func(third int) int { return (n + third*batches/3) % batches * batch }
				start := time.Now()
				if err := w.Gather(ids[of(0):of(0)+batch], x, nil); err != nil {
					b.Fatal(err)
				}
				gather = append(gather, time.Since(start))
				same = append(same, parallel(known[of(1):of(1)+batch], out[:len(x)], copySame))
				whole = append(whole, parallel(known[of(2):of(2)+batch], out, copyWhole))
				n++
			}
			t := gather.median()
			b.ReportMetric(batch/t*1e9, "windows/s")
			b.ReportMetric(float64(4*len(x))/t, "GB/s")
			b.ReportMetric(same.median()/t, "of_same")
			b.ReportMetric(whole.median()/t, "of_whole")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// parallel copies a batch on all cores.
func parallel(known [][]float32, out []float32, one func(src, dst []float32)) time.Duration {
	start := time.Now()
	size := len(out) / len(known)
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			for i := k * len(known) / workers; i < (k+1)*len(known)/workers; i++ {
				one(known[i], out[i*size:(i+1)*size])
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkOpen opens a file of 10,000 tickers, and makes a query of it. It compares both together with listing the
// start of every window.
func BenchmarkOpen(b *testing.B) {
	s := panel(b, 10_000, 2500, 1)
	q := reader.Query{Lookback: lookback}
	w, err := s.Windows(q)
	require.NoError(b, err)
	var open, query, list times
	for b.Loop() {
		start := time.Now()
		s, err := reader.Open(s.Path(), nil)
		if err != nil {
			b.Fatal(err)
		}
		open = append(open, time.Since(start))
		start = time.Now()
		if _, err := s.Windows(q); err != nil {
			b.Fatal(err)
		}
		query = append(query, time.Since(start))
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		starts := make([]int64, w.Len())
		for i := range starts {
			starts[i] = int64(i)
		}
		sink += float32(starts[len(list)%len(starts)])
		list = append(list, time.Since(start))
	}
	b.ReportMetric(open.median()/1e6, "ms/open")
	b.ReportMetric(query.median()/1e6, "ms/query")
	b.ReportMetric(list.median()/(open.median()+query.median()), "of_list")
	b.ReportMetric(0, "ns/op")
}
