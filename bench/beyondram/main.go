// Command beyondram measures shuffled epochs over a file that is larger than the memory that the reader may use, beside the
// same file in memory. It makes a panel, 600 MB by default, and runs each case in a process of its own; what is cold runs in
// a control group whose memory is limited, after the file was dropped from the page cache.
//
//	go run ./bench/beyondram [-dir DIR] [-tickers 1000] [-rows 2500] [-columns 60] [-memory 0.5]
//
// Linux only, as root or where control groups may be made. What is not possible is said, and left out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/order"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// task is what a child process measures.
type task struct {
	Path  string
	Case  string
	Group int64         // bytes of a group of the blocked order
	Limit time.Duration // after which an epoch is cut short
}

// result is what it prints.
type result struct {
	Windows int
	Seconds float64
	Sum     float32 // of some cells, so that they are read
}

func (r result) rate() float64 { return float64(r.Windows) / r.Seconds }

const (
	lookback = 60
	batch    = 256
	child    = "WSTORE_BEYOND_RAM_TASK"
)

func main() {
	run := parent
	if os.Getenv(child) != "" {
		run = measure
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "beyondram:", err)
		os.Exit(1)
	}
}

func parent() error {
	dir := flag.String("dir", "", "where the panel is made, and kept; default: a temporary directory")
	tickers := flag.Int("tickers", 1000, "tickers")
	rows := flag.Int("rows", 2500, "rows of each")
	columns := flag.Int("columns", 60, "float32 columns")
	share := flag.Float64("memory", 0.5, "memory of the cold cases, as a share of the file")
	flag.Parse()
	if *dir == "" {
		temp, err := os.MkdirTemp("", "wstore-beyondram-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		*dir = temp
	}
	path := filepath.Join(*dir, fmt.Sprintf("panel-%dx%dx%d.wst", *tickers, *rows, *columns))
	if err := makePanel(path, *tickers, *rows, *columns); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	limit := int64(float64(info.Size()) * *share)
	groupBytes := min(limit/5, 128<<20) // two are in memory, with the rows of lookback around their chunks
	fmt.Printf("file %d MB, memory of the cold cases %d MB, windows of %d rows × %d columns, batches of %d, groups of %d MB, %s\n",
		info.Size()/1e6, limit/1e6, lookback, *columns, batch, groupBytes/1e6, readAhead(path))

	warm, err := spawn(task{Path: path, Case: "warm", Group: groupBytes}, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%-58s %12s %10s\n", "", "windows/s", "of warm")
	show := func(what string, r result) {
		fmt.Printf("%-58s %12.0f %10.4f\n", what, r.rate(), r.rate()/warm.rate())
	}
	show("blocked, in memory, no limit", warm)

	group, err := newGroup(limit)
	if err != nil {
		fmt.Printf("no cold cases: the memory can't be limited here: %s\n", err)
		return nil
	}
	defer group.remove()
	results := map[string]result{}
	for _, c := range []struct{ name, what string }{
		{"blocked", "blocked, cold, limited"},
		{"exact", "exact with announcements, cold, limited"},
		{"plain", "plain mapping at random, cold, limited"},
	} {
		if err := drop(path); err != nil {
			fmt.Printf("no case %q: the file can't be dropped from memory: %s\n", c.what, err)
			continue
		}
		r, err := spawn(task{Path: path, Case: c.name, Group: groupBytes, Limit: 20 * time.Second}, group)
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		results[c.name] = r
		show(c.what, r)
	}
	if b, p := results["blocked"], results["plain"]; p.Windows > 0 && b.Windows > 0 {
		fmt.Printf("blocked, cold, is %.0f times plain mapping\n", b.rate()/p.rate())
	}
	return nil
}

// makePanel writes the file unless it is there.
func makePanel(path string, tickers, rows, columns int) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	fmt.Fprintln(os.Stderr, "making", path)
	group := format.Group{Name: "features", DType: format.Float32}
	for c := range columns {
		group.Columns = append(group.Columns, format.Column{Name: "c" + strconv.Itoa(c)})
	}
	w, err := writer.Create(path, &format.Schema{Groups: []format.Group{group}}, nil)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	times, cells := make([]int64, rows), make([]float32, rows*columns)
	for t := range tickers {
		for r := range times {
			times[r] = int64(86400 * r)
		}
		for i := range cells {
			cells[i] = rng.Float32()
		}
		if err := w.Begin(fmt.Sprintf("T%06d", t)); err != nil {
			return err
		}
		if err := w.Append(times, []writer.Cells{{F32: cells}}); err != nil {
			return err
		}
	}
	return w.Finish(context.Background(), nil)
}

// spawn runs a task in a process of its own, in a group if there is one.
func spawn(t task, g *group) (result, error) {
	var r result
	text, err := json.Marshal(t)
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), child+"="+string(text))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := c.Start(); err != nil {
		return r, err
	}
	if g != nil {
		err = g.add(c.Process.Pid)
	}
	if err == nil { // the child waits for this line, so that it reads nothing outside the group
		_, err = fmt.Fprintln(in, "go")
	}
	if err == nil {
		err = json.NewDecoder(out).Decode(&r)
	}
	in.Close()
	if waited := c.Wait(); err == nil {
		err = waited
	}
	return r, err
}

// measure is the child.
func measure() error {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(child)), &t); err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	s, err := reader.Open(t.Path, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := s.Windows(reader.Query{Lookback: lookback})
	if err != nil {
		return err
	}
	var r result
	switch t.Case {
	case "plain":
		r, err = plain(w, t.Limit)
	case "exact":
		r, err = epoch(w, order.KindExact, &t, t.Limit)
	case "warm":
		if _, err = epoch(w, order.KindBlocked, &t, 0); err == nil {
			r, err = epoch(w, order.KindBlocked, &t, 0)
		}
	default:
		r, err = epoch(w, order.KindBlocked, &t, 0)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// epoch runs one epoch, or what there is time for; 0: all of it.
func epoch(w *reader.Windows, kind order.Kind, t *task, limit time.Duration) (r result, err error) {
	o, err := w.Order(kind, 1, 0, t.Group)
	if err != nil {
		return r, err
	}
	share, err := order.NewShare(o.Len(), 0, batch, 0, 1, order.Keep)
	if err != nil {
		return r, err
	}
	runtime.GC()
	start := time.Now()
	for b, err := range w.Batches(context.Background(), o, share) {
		if err != nil {
			return r, err
		}
		r.Sum += b.X[0]
		r.Windows += len(b.IDs)
		if limit > 0 && time.Since(start) > limit {
			break
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// plain copies random windows one by one, without advice: what a plain memory map does.
func plain(w *reader.Windows, limit time.Duration) (r result, err error) {
	v, err := w.View()
	if err != nil {
		return r, err
	}
	defer v.Release()
	rng := rand.New(rand.NewPCG(5, 6))
	out := make([]float32, lookback*w.Inputs().Width)
	start := time.Now()
	for r.Windows < 5000 && time.Since(start) < limit {
		x, _ := v.At(rng.IntN(w.Len()))
		copy(out, x)
		r.Sum += out[0]
		r.Windows++
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}
