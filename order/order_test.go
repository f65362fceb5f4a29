package order_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/order"
)

var update = flag.Bool("update", false, "write spec/orders.json anew")

// all returns the whole order as a list.
func all(o order.Order) []int {
	out := make([]int, o.Len())
	o.Fill(out, 0)
	return out
}

func requirePermutation(t *testing.T, numbers []int, what ...any) {
	t.Helper()
	seen := make([]bool, len(numbers))
	for _, v := range numbers {
		if v < 0 || v >= len(seen) || seen[v] {
			require.Fail(t, "not a permutation", what...)
		}
		seen[v] = true
	}
}

func must(o order.Order, err error) order.Order {
	if err != nil {
		panic(err)
	}
	return o
}

// Every number once an epoch, for every n up to 5,000 and awkward chunks.
func TestBijection(t *testing.T) {
	for n := int64(0); n <= 5000; n++ {
		requirePermutation(t, all(must(order.Sequential(n))), n)
		requirePermutation(t, all(must(order.Exact(n, n, 3))), n)
		w, k := 1+n%61, 1+n%7
		requirePermutation(t, all(must(order.Blocked(n, 7, n, w, k))), n, w, k)
		if n%50 == 0 {
			for _, c := range [][2]int64{{1, 1}, {1, 100000}, {n + 1, 1}, {max(n, 1), 2}, {max(n-1, 1), 1}, {n/2 + 1, 3}, {2, 3}} {
				requirePermutation(t, all(must(order.Blocked(n, -1, 0, c[0], c[1]))), n, c)
			}
		}
	}
}

// reference is section 4 of the specification done the long way: lists of chunks, cut and permuted. It uses the
// permutation of the package, which the vectors pin down.
func reference(n, seed, epoch, w, k int64) []int {
	chunks := (n + w - 1) / w
	var chunkOrder []int
	for s := range chunks {
		chunkOrder = append(chunkOrder, int(order.Permute(uint64(chunks), order.Key(uint64(seed), uint64(epoch), 1), uint64(s))))
	}
	groups := max(1, (chunks+k-1)/k)
	var out []int
	for g := range groups {
		size := chunks / groups
		if g < chunks%groups {
			size++
		}
		var numbers []int
		for _, c := range chunkOrder[:size] {
			for i := int64(c) * w; i < min(n, int64(c+1)*w); i++ {
				numbers = append(numbers, int(i))
			}
		}
		chunkOrder = chunkOrder[size:]
		for j := range numbers {
			to := order.Permute(uint64(len(numbers)), order.Key(uint64(seed), uint64(epoch), uint64(2+g)), uint64(j))
			out = append(out, numbers[to])
		}
	}
	return out
}

func TestBlockedIsWhatTheSpecificationSays(t *testing.T) {
	for n := int64(1); n < 700; n += 3 {
		for _, c := range [][2]int64{{1, 1}, {7, 3}, {10, 1000}, {64, 2}, {n, 1}, {n + 5, 4}} {
			o := must(order.Blocked(n, 5, n, c[0], c[1]))
			require.Equal(t, reference(n, 5, n, c[0], c[1]), all(o), "n %d, W and K %v", n, c)
		}
	}
}

func TestGroupsTileThePositions(t *testing.T) {
	for n := int64(0); n < 300; n++ {
		o := must(order.Blocked(n, 1, 2, 1+n%13, 1+n%5))
		next := int64(0)
		for g := range o.Groups() {
			from, to := o.Group(g)
			require.Equal(t, next, from)
			next = to
			var inGroup, inChunks []int
			for p := from; p < to; p++ {
				require.Equal(t, g, o.GroupOf(p))
				inGroup = append(inGroup, int(o.At(p)))
			}
			o.Chunks(g, func(from, to int64) bool {
				for i := from; i < to; i++ {
					inChunks = append(inChunks, int(i))
				}
				return true
			})
			slices.Sort(inGroup)
			slices.Sort(inChunks)
			require.Equal(t, inChunks, inGroup, "a group's positions give the numbers of its chunks")
		}
		require.Equal(t, n, next)
	}
}

// A large store: no memory, exact ends, no number twice among neighbours.
func TestLarge(t *testing.T) {
	const n = 4_900_000_000 + 12345
	for _, o := range []order.Order{must(order.Exact(n, 1, 0)), must(order.Blocked(n, 1, 0, 1639, 2000)), must(order.Blocked(1<<62-1, 1, 0, 1, 1))} {
		seen := map[int64]bool{}
		for _, from := range []int64{0, o.Len() / 2, o.Len() - 2000} {
			for p := from; p < from+2000; p++ {
				v := o.At(p)
				require.True(t, v >= 0 && v < o.Len())
				require.False(t, seen[v])
				seen[v] = true
			}
		}
	}
}

func TestEpochsAndSeedsDiffer(t *testing.T) {
	a := all(must(order.Exact(1000, 0, 0)))
	for _, b := range []order.Order{must(order.Exact(1000, 0, 1)), must(order.Exact(1000, 1, 0)), must(order.Exact(1000, -1, 0))} {
		same := 0
		for i, v := range all(b) {
			if v == a[i] {
				same++
			}
		}
		require.Less(t, same, 20)
	}
}

// Over many keys every number comes about equally often at every position: a chi-square test whose bound a fair
// permutation exceeds once in some million.
func TestUniform(t *testing.T) {
	const n, keys = 12, 24000
	var count [n][n]float64
	for seed := range int64(keys) {
		for p, v := range all(must(order.Exact(n, seed, 0))) {
			count[p][v]++
		}
	}
	chi := 0.0
	for _, row := range count {
		for _, c := range row {
			d := c - keys/n
			chi += d * d / (keys / n)
		}
	}
	require.Less(t, chi, 121+5.2*15.6, "121 degrees of freedom")
}

func TestNothingIsAllocated(t *testing.T) {
	o := must(order.Blocked(1_000_003, 1, 0, 256, 512))
	dst := make([]int, 256)
	p := int64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Fill(dst, p); p += 9000 }))
}

func TestSharesCoverEveryPositionOnce(t *testing.T) {
	for _, n := range []int64{0, 1, 99, 100, 101, 257} {
		for _, start := range []int64{0, n / 2, n} {
			for _, world := range []int64{1, 2, 3, 7} {
				for _, tail := range []order.Tail{order.Keep, order.Drop, order.Pad} {
					if tail == order.Keep && world > 1 {
						_, err := order.NewShare(n, start, 10, 0, world, tail)
						require.Error(t, err)
						continue
					}
					seen := map[int64]int{}
					steps, padded := int64(-1), int64(0)
					for rank := range world {
						s, err := order.NewShare(n, start, 10, rank, world, tail)
						require.NoError(t, err)
						require.True(t, steps < 0 || steps == s.Steps(), "ranks have equal steps")
						steps = s.Steps()
						for k := range steps {
							from, valid, pads := s.Step(k)
							for p := from; p < from+valid; p++ {
								seen[p]++
							}
							padded += pads
							if tail != order.Keep {
								require.Equal(t, int64(10), valid+pads)
							}
						}
					}
					end := n
					if tail == order.Drop {
						end = start + steps*10*world
						require.Less(t, n-end, 10*world)
					}
					require.Len(t, seen, int(end-start))
					for p, times := range seen {
						require.True(t, times == 1 && p >= start && p < end)
					}
					if tail == order.Pad {
						require.Equal(t, steps*10*world, end-start+padded)
					}
				}
			}
		}
	}
}

// Stopping after any step and going on with another batch size and world gives the rest of the same epoch.
func TestResume(t *testing.T) {
	o := must(order.Exact(1000, 9, 9))
	for stop := range int64(12) {
		var got []int
		take := func(start, batch, world, steps int64, tail order.Tail) int64 {
			next := start
			for step := int64(0); steps < 0 || step < steps; step++ {
				for rank := range world {
					s, err := order.NewShare(o.Len(), start, batch, rank, world, tail)
					require.NoError(t, err)
					if step >= s.Steps() {
						return next
					}
					from, valid, _ := s.Step(step)
					ids := make([]int, valid)
					o.Fill(ids, from)
					got = append(got, ids...)
					next = s.Next(step)
				}
			}
			return next
		}
		at := take(0, 16, 4, stop, order.Pad)
		take(at, 50, 3, -1, order.Pad)
		require.Equal(t, all(o), got)
	}
}

func TestMisuse(t *testing.T) {
	for _, err := range []error{
		second(order.Exact(-1, 0, 0)), second(order.Sequential(1 << 62)), second(order.Blocked(5, 0, 0, 0, 1)), second(order.Blocked(5, 0, 0, 1, 0)),
	} {
		require.Error(t, err)
	}
	o := must(order.Exact(5, 0, 0))
	require.Panics(t, func() { o.At(5) })
	require.Panics(t, func() { o.At(-1) })
	require.Panics(t, func() { o.Fill(make([]int, 2), 4) })
}

func second[T any](_ T, err error) error { return err }

func TestChunkSize(t *testing.T) {
	w, k := order.ChunkSize(240, 60, 1, 0)
	require.Equal(t, int64(274), w) // ceil(65536 / 240)
	require.Equal(t, int64(134217728/(274*240)), k)
	w, k = order.ChunkSize(240, 1000, 7, 1)
	require.Equal(t, int64(143), w)
	require.Equal(t, int64(1), k)
}

// vector is one entry of spec/orders.json: numbers as decimal text, since many readers of JSON lose integers above 2^53.
type vector struct {
	Order   string   `json:"order"`
	N       int64    `json:"n,string"`
	Seed    int64    `json:"seed,string"`
	Epoch   int64    `json:"epoch,string"`
	W       int64    `json:"w,string"`
	K       int64    `json:"k,string"`
	From    int64    `json:"from,string"`
	Numbers []string `json:"numbers"`
}

func vectors() []vector {
	var out []vector
	add := func(o order.Order, epoch int64, from ...int64) {
		w, k := o.Chunk()
		for _, f := range from {
			v := vector{Order: o.Kind().String(), N: o.Len(), Seed: o.Seed(), Epoch: epoch, W: w, K: k, From: f}
			for p := f; p < min(o.Len(), f+24); p++ {
				b, _ := json.Marshal(o.At(p))
				v.Numbers = append(v.Numbers, string(b))
			}
			out = append(out, v)
		}
	}
	for _, n := range []int64{1, 2, 3, 5, 16, 17, 1000} {
		add(must(order.Exact(n, 42, 1)), 1, 0)
	}
	add(must(order.Exact(24, -7, -1)), -1, 0)
	add(must(order.Exact(4_900_000_001, 1<<62, 12)), 12, 0, 2_450_000_000, 4_900_000_001-24)
	add(must(order.Exact(1<<62-1, 3, 4)), 4, 0, 1<<61)
	for _, c := range [][5]int64{{24, 0, 0, 5, 2}, {24, 1, 0, 1, 1}, {23, 1, 0, 8, 100}, {100, 2, 3, 7, 4}, {3, 1, 1, 10, 10}} {
		add(must(order.Blocked(c[0], c[1], c[2], c[3], c[4])), c[2], 0, c[0]/2)
	}
	add(must(order.Blocked(4_900_000_001, 5, 6, 1639, 340)), 6, 0, 2_450_000_000, 4_900_000_001-24)
	return out
}

// The vectors are what another implementation checks itself with; once released they don't change.
func TestVectors(t *testing.T) {
	text, err := json.MarshalIndent(map[string]any{"schema": 1, "vectors": vectors()}, "", " ")
	require.NoError(t, err)
	text = append(text, '\n')
	const file = "../spec/orders.json"
	if *update {
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

func BenchmarkFill(b *testing.B) {
	for name, o := range map[string]order.Order{
		"exact": must(order.Exact(4_900_000_000, 1, 0)), "blocked": must(order.Blocked(4_900_000_000, 1, 0, 1639, 340)),
	} {
		b.Run("order="+name, func(b *testing.B) {
			dst := make([]int, 256)
			for b.Loop() {
				o.Fill(dst, 12345)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/number")
		})
	}
}
