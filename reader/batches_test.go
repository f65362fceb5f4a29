package reader_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/order"
	"github.com/wstore/wstore/reader"
)

var kinds = []order.Kind{order.KindSequential, order.KindExact, order.KindBlocked}

// orderOf is an order over windows, with small groups if it is blocked.
func orderOf(t testing.TB, w *reader.Windows, kind order.Kind, seed, epoch int64) order.Order {
	t.Helper()
	o, err := w.Order(kind, seed, epoch, 100_000)
	require.NoError(t, err)
	return o
}

func share(t testing.TB, n, start, batch, rank, world int64, tail order.Tail) order.Share {
	t.Helper()
	s, err := order.NewShare(n, start, batch, rank, world, tail)
	require.NoError(t, err)
	return s
}

// Every kind of order, tail and access yields what the order says, and the values that Gather gives.
func TestBatches(t *testing.T) {
	path := save(t, t.TempDir(), steps(9000, 70, 6500, 0, 3).Build())
	for how, s := range everyWay(t, path) {
		w := windows(t, s, reader.Query{Inputs: []string{"x", "y"}, Lookback: 20, Horizons: []int{1, 3}})
		n := int64(w.Len())
		in, out := w.Inputs(), w.Targets()
		for _, kind := range kinds {
			o := orderOf(t, w, kind, 5, 1)
			require.True(t, kind != order.KindBlocked || o.Groups() > 2, "the test is about several groups")
			for _, c := range []struct {
				start, batch, world int64
				tail                order.Tail
			}{{0, 500, 1, order.Keep}, {0, 700, 3, order.Pad}, {n - 2500, 700, 3, order.Drop}, {0, n + 5, 1, order.Keep}, {n - 3, 7, 2, order.Pad}, {n, 5, 1, order.Keep}} {
				what := fmt.Sprint(how, " ", kind, " ", c)
				for rank := range c.world {
					sh := share(t, n, c.start, c.batch, rank, c.world, c.tail)
					step := int64(0)
					for b, err := range w.Batches(context.Background(), o, sh) {
						require.NoError(t, err, what)
						from, valid, padded := sh.Step(step)
						want := make([]int, valid)
						o.Fill(want, from)
						for range padded {
							want = append(want, int(o.At(n-1)))
						}
						require.Equal(t, want, b.IDs, what)
						require.Equal(t, int(valid), b.Valid, what)
						require.Equal(t, sh.Next(step), b.Next, what)
						x, y := make([]float32, len(want)*in.Size()), make([]float32, len(want)*out.Size())
						require.NoError(t, w.Gather(want, x, y))
						require.True(t, slices.Equal(x, b.X) && slices.Equal(y, b.Y), what)
						step++
					}
					require.Equal(t, sh.Steps(), step, what)
				}
			}
		}
		require.NoError(t, s.Close())
	}
}

// A run that stops and goes on under another world and batch size sees every window once.
func TestBatchesResume(t *testing.T) {
	w := windows(t, open(t, steps(4000, 3000), reader.Map), reader.Query{Lookback: 30})
	n := int64(w.Len())
	for _, kind := range kinds {
		o := orderOf(t, w, kind, 1, 2)
		seen := make([]int, n)
		next := int64(0)
		for rank := range int64(3) {
			steps := 0
			for b, err := range w.Batches(context.Background(), o, share(t, n, 0, 100, rank, 3, order.Drop)) {
				require.NoError(t, err)
				for _, i := range b.IDs {
					seen[i]++
				}
				if next = b.Next; steps == 7 {
					break
				}
				steps++
			}
		}
		require.EqualValues(t, 8*300, next)
		for rank := range int64(2) {
			for b, err := range w.Batches(context.Background(), o, share(t, n, next, 64, rank, 2, order.Pad)) {
				require.NoError(t, err)
				for _, i := range b.IDs[:b.Valid] {
					seen[i]++
				}
			}
		}
		for i, times := range seen {
			require.Equal(t, 1, times, "window %d, order %s", i, kind)
		}
	}
}

func TestBatchesRefuse(t *testing.T) {
	s := open(t, steps(100), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 10})
	n := int64(w.Len())
	o := orderOf(t, w, order.KindExact, 0, 0)
	fails := func(o order.Order, sh order.Share, target error) {
		t.Helper()
		count := 0
		for b, err := range w.Batches(context.Background(), o, sh) {
			require.ErrorIs(t, err, target)
			require.Nil(t, b)
			count++
		}
		require.Equal(t, 1, count)
	}
	short, err := order.Exact(n-1, 0, 0)
	require.NoError(t, err)
	fails(short, share(t, n, 0, 5, 0, 1, order.Keep), reader.ErrQuery)
	fails(o, share(t, n-1, 0, 5, 0, 1, order.Keep), reader.ErrQuery)
	fails(o, order.Share{}, reader.ErrQuery)
	_, err = w.OrderFingerprint(short)
	require.ErrorIs(t, err, reader.ErrQuery)
	_, err = w.Order(order.Kind(7), 0, 0, 0)
	require.ErrorIs(t, err, reader.ErrQuery)

	none, err := w.Between(at(1000), time.Time{})
	require.NoError(t, err)
	for _, kind := range kinds {
		for range none.Batches(context.Background(), orderOf(t, none, kind, 0, 0), order.Share{}) {
			require.Fail(t, "there are no windows")
		}
	}
	if math.MaxInt > math.MaxInt32 {
		wide := windows(t, open(t, steps(40_000), reader.Map), reader.Query{Lookback: 39_000})
		huge := share(t, int64(wide.Len()), 0, 1<<31, 0, 1, order.Pad)
		for _, err := range wide.Batches(context.Background(), orderOf(t, wide, order.KindSequential, 0, 0), huge) {
			require.ErrorIs(t, err, reader.ErrQuery)
		}
	}
	require.NoError(t, s.Close())
	fails(o, share(t, n, 0, 5, 0, 1, order.Keep), reader.ErrClosed)
}

// Whoever leaves a loop early leaves nothing behind: no goroutine, no lease, no advice.
func TestBatchesEnd(t *testing.T) {
	s, err := reader.Open(save(t, t.TempDir(), steps(5000, 5000).Build()), nil)
	require.NoError(t, err)
	w := windows(t, s, reader.Query{Lookback: 30})
	n := int64(w.Len())
	before := runtime.NumGoroutine()
	for _, kind := range kinds {
		o := orderOf(t, w, kind, 0, 0)
		for stop := range 4 {
			steps := 0
			for _, err := range w.Batches(context.Background(), o, share(t, n, 0, 500, 0, 1, order.Keep)) {
				require.NoError(t, err)
				if steps++; steps > stop {
					break
				}
			}
			require.Panics(t, func() {
				for range w.Batches(context.Background(), o, share(t, n, 0, 500, 0, 1, order.Keep)) {
					panic("mine")
				}
			})

			ctx, cancel := context.WithCancel(context.Background())
			steps = 0
			var last error
			for _, err := range w.Batches(ctx, o, share(t, n, 0, 500, 0, 1, order.Keep)) {
				require.NoError(t, last, "nothing comes behind an error")
				if last = err; err == nil {
					if steps++; steps > stop {
						cancel()
					}
				}
			}
			require.ErrorIs(t, last, context.Canceled)
			require.Equal(t, stop+1, steps)
			cancel()
		}
	}
	require.Equal(t, before, runtime.NumGoroutine(), "batches wait for their goroutine")

	// Closed meanwhile: the loop keeps the mapping, but nothing new begins.
	steps, failed := 0, error(nil)
	for b, err := range w.Batches(context.Background(), orderOf(t, w, order.KindBlocked, 0, 0), share(t, n, 0, 500, 0, 1, order.Keep)) {
		if failed = err; err == nil {
			steps++
			require.Len(t, b.IDs, 500)
			require.NoError(t, s.Close())
		}
	}
	require.ErrorIs(t, failed, reader.ErrClosed)
	require.GreaterOrEqual(t, steps, 1)
	require.NoError(t, s.CloseWait(context.Background()))
}

// Many loops over one store at once, each in its own order.
func TestBatchesAtOnce(t *testing.T) {
	w := windows(t, open(t, steps(3000, 2000), reader.Map), reader.Query{Lookback: 30})
	n := int64(w.Len())
	var wg sync.WaitGroup
	sums := make([]int, 6)
	for k := range sums {
		o := orderOf(t, w, kinds[k%3], int64(k), 0)
		sh := share(t, n, 0, 300, 0, 1, order.Keep)
		wg.Go(func() {
			for b, err := range w.Batches(context.Background(), o, sh) {
				if err != nil {
					sums[k] = -1
					return
				}
				for _, i := range b.IDs {
					sums[k] += i
				}
			}
		})
	}
	wg.Wait()
	for _, sum := range sums {
		require.EqualValues(t, n*(n-1)/2, sum)
	}
}

// TestBatchesTruncated truncates the file under a loop, in a process of its own.
func TestBatchesTruncated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file can't be truncated there")
	}
	if !inChild(t) {
		return
	}
	for _, access := range []reader.Access{reader.Map, reader.Read} {
		for _, kind := range kinds {
			path := save(t, t.TempDir(), steps60k())
			s, err := reader.Open(path, &reader.Options{Access: access})
			require.NoError(t, err)
			w := windows(t, s, reader.Query{Lookback: 60})
			n := int64(w.Len())
			steps, failed := 0, error(nil)
			whole, err := reader.Open(save(t, t.TempDir(), steps60k()), nil)
			require.NoError(t, err)
			want := windows(t, whole, reader.Query{Lookback: 60})
			for b, err := range w.Batches(context.Background(), orderOf(t, w, kind, 0, 0), share(t, n, 0, 400, 0, 1, order.Keep)) {
				require.NoError(t, failed, "nothing comes behind an error")
				if failed = err; err == nil {
					x, y := make([]float32, len(b.X)), make([]float32, len(b.Y))
					require.NoError(t, want.Gather(b.IDs, x, y))
					require.True(t, slices.Equal(x, b.X) && slices.Equal(y, b.Y), "no made-up rows")
				}
				if steps++; steps == 3 { // within a page, the rest of which reads as zeros
					require.NoError(t, os.Truncate(path, 700_100))
				}
			}
			require.NoError(t, whole.Close())
			require.ErrorIs(t, failed, format.Truncated)
			require.ErrorContains(t, failed, path)

			require.NoError(t, os.Truncate(path, 9000))
			for _, err := range []error{
				second(w.Split(reader.Split{Test: []reader.TimeRange{{From: at(3)}}})),
				second(w.Between(at(1), at(2))),
				second(w.ByTime()),
				second(w.WalkForward(reader.WalkForward{Every: reader.Period{Times: 5}, Train: reader.Period{Times: 5}})),
				second(w.Split(reader.Split{EmbargoTimes: 2})),
			} {
				require.ErrorIs(t, err, format.Truncated)
				require.ErrorContains(t, err, path)
			}
			_, _, err = w.Statistics(context.Background())
			require.ErrorIs(t, err, format.Truncated)
			require.NoError(t, s.Close())
		}
	}
	t.Log("the process lives")
}

// steps60k is a file of two tickers of 60,000 rows.
func steps60k() []byte { return steps(60_000, 60_000).Build() }

func second[T any](_ T, err error) error { return err }

// TestBatchesReplaced goes on with the old file when another one takes its name.
func TestBatchesReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be replaced there")
	}
	path := save(t, t.TempDir(), steps(5000, 4000).Build())
	s, err := reader.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	w := windows(t, s, reader.Query{Lookback: 30})
	n := int64(w.Len())
	in := w.Inputs()
	for _, kind := range kinds {
		seen := int64(0)
		for b, err := range w.Batches(context.Background(), orderOf(t, w, kind, 3, 0), share(t, n, 0, 400, 0, 1, order.Keep)) {
			require.NoError(t, err)
			rename(t, path, steps(4).Build())
			for k, i := range b.IDs {
				p := w.Locate(i)
				require.Equal(t, float32(1000*p.Ticker)+float32(10*p.First), b.X[k*in.Size()])
			}
			seen += int64(len(b.IDs))
		}
		require.Equal(t, n, seen)
	}
}

// Fingerprints are equal for equal windows, however they are asked for, and differ when anything differs.
func TestFingerprints(t *testing.T) {
	c := steps(300, 200)
	s := open(t, c, reader.Map)
	base := reader.Query{Inputs: []string{"x", "y"}, Targets: []string{"ret"}, Lookback: 10}
	w := windows(t, s, base)
	of := func(s *reader.Store, change func(*reader.Query)) [32]byte {
		q := base
		change(&q)
		return windows(t, s, q).Fingerprint()
	}
	same := [][32]byte{
		of(s, func(*reader.Query) {}),
		of(open(t, c, reader.Read), func(*reader.Query) {}),
		of(s, func(q *reader.Query) { q.Horizons, q.TargetLength, q.Stride = []int{1}, 1, 1 }),
		of(s, func(q *reader.Query) { q.Tickers = []string{"T001", "T000"} }),
		of(s, func(q *reader.Query) { q.To = at(300) }),
		of(s, func(q *reader.Query) { q.Breaks = []string{} }),
	}
	all, err := w.Between(time.Time{}, time.Time{})
	require.NoError(t, err)
	same = append(same, all.Fingerprint())
	aligned := *c
	aligned.AlignLog2 = 12
	same = append(same, of(open(t, &aligned, reader.Map), func(*reader.Query) {}))
	for i, f := range same {
		require.Equal(t, w.Fingerprint(), f, i)
	}
	different := map[[32]byte]string{w.Fingerprint(): "base"}
	differs := func(what string, f [32]byte) {
		t.Helper()
		other, twice := different[f]
		require.False(t, twice, "%s and %s have the same fingerprint", what, other)
		different[f] = what
	}
	for what, change := range map[string]func(*reader.Query){
		"inputs":       func(q *reader.Query) { q.Inputs = []string{"x"} },
		"input order":  func(q *reader.Query) { q.Inputs = []string{"y", "x"} },
		"targets":      func(q *reader.Query) { q.Targets = []string{"z"} },
		"no targets":   func(q *reader.Query) { q.Targets = []string{} },
		"lookback":     func(q *reader.Query) { q.Lookback = 11 },
		"horizon":      func(q *reader.Query) { q.Horizons = []int{2} },
		"horizons":     func(q *reader.Query) { q.Horizons = []int{1, 2} },
		"length":       func(q *reader.Query) { q.TargetLength = 2 },
		"stride":       func(q *reader.Query) { q.Stride = 2 },
		"a ticker":     func(q *reader.Query) { q.Tickers = []string{"T000"} },
		"to":           func(q *reader.Query) { q.To = at(250) },
		"from":         func(q *reader.Query) { q.From = at(10) },
		"other tail":   func(q *reader.Query) { q.From, q.To = at(11), at(299) },
		"one in place": func(q *reader.Query) { q.At = []time.Time{at(20), at(30), at(50)} },
		"another":      func(q *reader.Query) { q.At = []time.Time{at(20), at(31), at(50)} },
	} {
		differs(what, of(s, change))
	}
	other := steps(300, 200)
	other.Tickers[1].Cells[2][7]++ // of z, which the query does not read: other content all the same
	differs("content", of(open(t, other, reader.Map), func(*reader.Query) {}))

	for _, kind := range kinds {
		f, err := w.OrderFingerprint(orderOf(t, w, kind, 0, 0))
		require.NoError(t, err)
		differs(kind.String(), f)
		again, err := w.OrderFingerprint(orderOf(t, w, kind, 0, 9))
		require.NoError(t, err)
		require.Equal(t, f, again, "epochs are of one run")
	}
	for what, o := range map[string]func() (order.Order, error){
		"seed":   func() (order.Order, error) { return w.Order(order.KindExact, 1, 0, 0) },
		"groups": func() (order.Order, error) { return w.Order(order.KindBlocked, 0, 0, 1<<20) },
	} {
		o, err := o()
		require.NoError(t, err)
		f, err := w.OrderFingerprint(o)
		require.NoError(t, err)
		differs(what, f)
	}
	b, err := w.ByTime()
	require.NoError(t, err)
	for _, kind := range kinds[:2] {
		o, err := order.Sequential(int64(b.Len()))
		if kind == order.KindExact {
			o, err = order.Exact(int64(b.Len()), 0, 0)
		}
		require.NoError(t, err)
		f, err := b.OrderFingerprint(o)
		require.NoError(t, err)
		differs("by time "+kind.String(), f)
	}
}
