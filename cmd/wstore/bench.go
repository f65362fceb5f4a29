package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/reader"
)

// maxBatchBytes bounds the memory of a batch.
const maxBatchBytes = 256 << 20

func newBench(a *app) *cobra.Command {
	var q queryFlags
	var asJSON bool
	var duration time.Duration
	var batch int
	cmd := &cobra.Command{
		Use:   "bench FILE",
		Short: "Measure a file on this machine beside copying memory",
		Long: `bench measures opening, a query, views at random windows, and batches gathered in order and
shuffled, each beside what a bare program would do in the same run: slicing a known array,
or copying the same rows and columns by as many goroutines. A ratio of 1 is as fast as that.
If the columns span groups, the copy is of as many bytes that lie together in memory.

The file is measured as it is found: what is not in memory is read from the disk, so run it
twice for warm numbers.`,
		Example: `  wstore bench prices.wst
  wstore bench prices.wst --lookback 250 --inputs close,volume --targets close --json`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if duration <= 0 || batch < 1 {
				return usagef("--duration and --batch must be greater than 0")
			}
			w, query, err := a.windows(cmd, args[0], &q)
			if err != nil {
				return err
			}
			defer w.Store().Close()
			if w.Len() == 0 {
				why, err := whyNone(w.Store(), query)
				if err != nil {
					return err
				}
				return usagef("no windows to measure: %s", why)
			}
			m, err := measure(cmd.Context(), w, query, duration, batch)
			if err != nil {
				return err
			}
			if m.Batch < batch && cmd.Flags().Changed("batch") {
				a.note("measured in batches of %s, not of %s: there are %s, and a batch has at most %s",
					count(m.Batch), count(batch), plural(w.Len(), "window"), size(maxBatchBytes))
			}
			if asJSON {
				return writeJSON(a.out, m)
			}
			a.printBench(w, m)
			return nil
		},
	}
	q.add(cmd, 60, "`ROWS` of a window")
	cmd.Flags().IntVar(&batch, "batch", 256, "gather `N` windows at a time")
	cmd.Flags().DurationVar(&duration, "duration", 400*time.Millisecond, "measure each for `TIME`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// measurement is what bench --json prints. Times are in nanoseconds, rates in bytes per second.
type measurement struct {
	Schema      int     `json:"schema"`
	Windows     int     `json:"windows"`
	WindowBytes int     `json:"window_bytes"` // inputs and targets
	Batch       int     `json:"batch"`
	Cores       int     `json:"cores"`
	OpenNS      int64   `json:"open_ns"`
	QueryNS     int64   `json:"query_ns"`
	AtNS        float64 `json:"at_ns"`    // of one random window; 0 if the columns span groups
	SliceNS     float64 `json:"slice_ns"` // of slicing a known array at random
	Sequential  rates   `json:"sequential"`
	Shuffled    rates   `json:"shuffled"`
}

// rates compares gathering with copying.
type rates struct {
	Gather float64 `json:"gather"`
	Copy   float64 `json:"copy"`
	Ratio  float64 `json:"ratio"`
}

func measure(ctx context.Context, w *reader.Windows, q reader.Query, d time.Duration, batch int) (*measurement, error) {
	x, y := w.Inputs(), w.Targets()
	m := &measurement{
		Schema: jsonSchema, Windows: w.Len(), WindowBytes: 4 * (x.Size() + y.Size()), Cores: runtime.GOMAXPROCS(0),
	}
	m.Batch = max(1, min(batch, w.Len(), maxBatchBytes/m.WindowBytes))
	var err error
	if m.OpenNS, err = median(ctx, d, func() error {
		s, err := openStore(w.Store().Path())
		if err != nil {
			return err
		}
		return s.Close()
	}); err != nil {
		return nil, err
	}
	if m.QueryNS, err = median(ctx, d, func() error {
		_, err := w.Store().Windows(q)
		return err
	}); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	v, err := w.View()
	if errors.Is(err, reader.ErrSpans) {
		v = nil
	} else if err != nil {
		return nil, err
	} else {
		defer v.Release()
		if err := m.views(ctx, w, v, d, rng); err != nil {
			return nil, err
		}
	}
	inOrder := func(i int) int { return i }
	shuffle := func(int) int { return rng.IntN(w.Len()) }
	if m.Sequential, err = gather(ctx, w, v, d, m.Batch, inOrder); err != nil {
		return nil, err
	}
	m.Shuffled, err = gather(ctx, w, v, d, m.Batch, shuffle)
	return m, err
}

// median runs f for a while, at least three times, and returns the median time.
func median(ctx context.Context, d time.Duration, f func() error) (int64, error) {
	var times []int64
	for start := time.Now(); len(times) < 3 || time.Since(start) < d; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		t := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(t).Nanoseconds())
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// views times View.At at random windows, and slicing an array at random places known beforehand. Neither looks at more
// than one element, so that it is the finding of a window that is measured.
func (m *measurement) views(ctx context.Context, w *reader.Windows, v *reader.View, d time.Duration, rng *rand.Rand) error {
	const n = 4096
	ids, starts := make([]int, n), make([]int, n)
	inputs := w.Inputs()
	size := max(1, inputs.Size())
	array := make([]float32, size+n)
	for i := range ids {
		ids[i], starts[i] = rng.IntN(w.Len()), rng.IntN(n)
	}
	var at, bare []int64
	for start := time.Now(); len(at) < 3 || time.Since(start) < d; {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := time.Now()
		err := v.Guard(func() error {
			length := 0
			for _, i := range ids {
				x, _ := v.At(i)
				length += len(x)
			}
			runtime.KeepAlive(length) // or the compiler could leave it all out
			return nil
		})
		if err != nil {
			return err
		}
		at = append(at, time.Since(t).Nanoseconds())
		t = time.Now()
		length := 0
		for _, p := range starts {
			length += len(slice(array, p, size))
		}
		runtime.KeepAlive(length)
		bare = append(bare, time.Since(t).Nanoseconds())
	}
	slices.Sort(at)
	slices.Sort(bare)
	m.AtNS, m.SliceNS = float64(at[len(at)/2])/n, float64(bare[len(bare)/2])/n
	return nil
}

//go:noinline
func slice(array []float32, p, size int) []float32 { return array[p : p+size : p+size] }

// gather times Windows.Gather beside copying the same elements from places known beforehand, by turns, so that both meet
// the same caches. Without a view, which knows the places, as many elements are copied from anywhere. Pick returns the
// window of each position.
func gather(ctx context.Context, w *reader.Windows, v *reader.View, d time.Duration, batch int, pick func(i int) int) (rates, error) {
	c := copier{v: v, from: make([]reader.Window, batch), inputs: w.Inputs(), targets: w.Targets()}
	nx, ny := c.inputs.Size(), c.targets.Size()
	x, y := make([]float32, batch*nx), make([]float32, batch*ny)
	if v == nil {
		for k := range c.from {
			c.from[k] = reader.Window{X: make([]float32, nx), Y: make([]float32, ny)}
		}
	}
	ids := make([]int, batch)
	var spent [2]time.Duration
	var turns [2]int
	position := 0
	for turn, start := 0, time.Now(); turn < 4 || time.Since(start) < 2*d; turn++ {
		if err := ctx.Err(); err != nil {
			return rates{}, err
		}
		for k := range ids {
			ids[k] = pick(position)
			position = (position + 1) % w.Len()
			if v != nil {
				c.from[k].X, c.from[k].Y = v.At(ids[k])
			}
		}
		which, run := turn%2, func() error { return w.Gather(ids, x, y) }
		if which == 1 {
			run = func() error { return c.copy(x, y) }
		}
		t := time.Now()
		if err := run(); err != nil {
			return rates{}, err
		}
		if turn >= 2 { // the first of each is a warm-up
			spent[which] += time.Since(t)
			turns[which]++
		}
	}
	rate := func(i int) float64 {
		return 4 * float64(turns[i]) * float64(batch) * float64(nx+ny) / max(spent[i].Seconds(), 1e-9)
	}
	return rates{rate(0), rate(1), rate(0) / rate(1)}, nil
}

// copier copies windows as Gather packs them.
type copier struct {
	v               *reader.View // nil: the windows are packed already
	from            []reader.Window
	inputs, targets reader.Layout
}

// copy copies by as many goroutines as Gather takes.
func (c *copier) copy(x, y []float32) error {
	n := len(c.from)
	nx, ny := len(x)/n, len(y)/n
	workers := min(runtime.GOMAXPROCS(0), 1+(len(x)+len(y))>>16, n)
	part := func(k int) error {
		for i := k * n / workers; i < (k+1)*n/workers; i++ {
			if c.v == nil {
				copy(x[i*nx:(i+1)*nx], c.from[i].X)
				copy(y[i*ny:(i+1)*ny], c.from[i].Y)
			} else {
				pack(x[i*nx:(i+1)*nx], c.from[i].X, &c.inputs)
				pack(y[i*ny:(i+1)*ny], c.from[i].Y, &c.targets)
			}
		}
		return nil
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			if c.v == nil {
				errs[k] = part(k)
			} else {
				errs[k] = c.v.Guard(func() error { return part(k) })
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// pack copies the rows and columns of one side of a window.
func pack(dst, src []float32, l *reader.Layout) {
	if l.Whole() {
		copy(dst, src)
		return
	}
	for _, start := range l.Starts {
		for r := start; r < start+l.Length; r++ {
			row := src[r*l.Width:][:l.Width]
			for k, c := range l.Columns {
				dst[k] = row[c]
			}
			dst = dst[len(l.Columns):]
		}
	}
}

func (a *app) printBench(w *reader.Windows, m *measurement) {
	fmt.Fprintf(a.out, "%s: %s of %s, batches of %d, %s\n\n", clean(w.Store().Path()), plural(m.Windows, "window"),
		size(int64(m.WindowBytes)), m.Batch, plural(m.Cores, "core"))
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	duration := func(ns float64) string { return round(time.Duration(ns)).String() }
	rate := func(r float64) string { return size(int64(r)) + "/s" }
	ratio := func(r rates) string { return fmt.Sprintf("%.2f of copying", r.Ratio) }
	line("open", duration(float64(m.OpenNS)))
	line("query", duration(float64(m.QueryNS)))
	if m.AtNS > 0 {
		line("view, random", fmt.Sprintf("%.1f ns", m.AtNS), fmt.Sprintf("%.1f ns slicing an array", m.SliceNS), fmt.Sprintf("%+.1f ns", m.AtNS-m.SliceNS))
	} else {
		line("view", "none", "the columns span groups")
	}
	copying := " copying"
	if m.AtNS == 0 {
		copying = " copying as many bytes"
	}
	line("gather, in order", rate(m.Sequential.Gather), rate(m.Sequential.Copy)+copying, ratio(m.Sequential))
	line("gather, shuffled", rate(m.Shuffled.Gather), rate(m.Shuffled.Copy)+copying, ratio(m.Shuffled))
	t.Flush()
}

// round keeps three digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
