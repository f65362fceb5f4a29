package main

import (
	"context"
	"io"
	"iter"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/errgroup"

	"github.com/wstore/wstore/format"
)

// writeGzip compresses what write writes.
func writeGzip(w io.Writer, write func(io.Writer) error) error {
	z := gzip.NewWriter(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

// writeCSV writes header and rows.
func (p *panel) writeCSV(ctx context.Context, w io.Writer) error {
	schema := p.s.Meta().Schema
	head := appendCSV(nil, p.names.ticker)
	head = appendCSV(append(head, ','), p.names.time)
	for g := range schema.Groups {
		for _, c := range schema.Groups[g].Columns {
			head = appendCSV(append(head, ','), c.Name)
		}
	}
	for _, name := range p.names.breaks {
		if name != "" {
			head = appendCSV(append(head, ','), name)
		}
	}
	if _, err := w.Write(append(head, '\n')); err != nil {
		return err
	}
	clocks, err := p.clocks()
	if err != nil {
		return err
	}
	texts := make([][][]string, len(schema.Groups))
	for g := range schema.Groups {
		columns := schema.Groups[g].Columns
		for i, c := range columns {
			if names := p.categories[c.Name]; names != nil {
				if texts[g] == nil {
					texts[g] = make([][]string, len(columns))
				}
				texts[g][i] = names
			}
		}
	}
	return inOrder(ctx, w, p.pieces(), func() func([]byte, series) ([]byte, error) {
		r := &csvRenderer{p: p, clock: clocks[0], ends: append([]clock{}, clocks[1:]...), texts: texts}
		return r.render
	})
}

// clocks returns what writes the times, and the label ends of each group.
func (p *panel) clocks() ([]clock, error) {
	schema := p.s.Meta().Schema
	dates, err := onlyDates(p.s, p.v)
	if err != nil {
		return nil, err
	}
	clocks := []clock{newClock(schema.Unit, dates)}
	for g := range schema.Groups {
		dates := schema.Zone == "" && schema.Groups[g].DType == format.Int64
		for t := 0; dates && t < len(p.s.Tickers()); t++ {
			err := p.v.Guard(func() error {
				ends, err := p.v.LabelEnds(t, g)
				dates = midnight(schema.Unit, ends)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		clocks = append(clocks, newClock(schema.Unit, dates))
	}
	return clocks, nil
}

// pieces cuts the rows into pieces that are worth a goroutine's work and bounded in memory.
func (p *panel) pieces() iter.Seq[series] {
	const cells = 64 << 10
	rows := max(1, cells/(2+p.s.Meta().Schema.Columns()))
	return func(yield func(series) bool) {
		for _, s := range p.series {
			for from := s.from; from < s.to; from += rows {
				if !yield(series{s.ticker, from, min(s.to, from+rows)}) {
					return
				}
			}
		}
	}
}

// inOrder renders pieces on all cores and writes them in their order.
func inOrder(ctx context.Context, w io.Writer, pieces iter.Seq[series], renderer func() func(dst []byte, s series) ([]byte, error)) error {
	type job struct {
		piece series
		done  chan []byte
	}
	workers := runtime.GOMAXPROCS(0)
	todo, order := make(chan job), make(chan job, 2*workers)
	free := make(chan []byte, 4*workers)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(todo)
		defer close(order)
		for s := range pieces {
			j := job{s, make(chan []byte, 1)}
			for _, c := range []chan job{order, todo} {
				select {
				case c <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error {
			render := renderer()
			for j := range todo {
				var buf []byte
				select {
				case buf = <-free:
				default:
				}
				b, err := render(buf[:0], j.piece)
				if err != nil {
					return err
				}
				j.done <- b
			}
			return nil
		})
	}
	g.Go(func() error {
		for j := range order {
			select {
			case b := <-j.done:
				if _, err := w.Write(b); err != nil {
					return err
				}
				select {
				case free <- b:
				default:
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return g.Wait()
}

// csvRenderer writes rows as text, on one goroutine.
type csvRenderer struct {
	p     *panel
	clock clock
	ends  []clock      // per group
	texts [][][]string // per group and column, its categories; nil of a group without any
	name  []byte
	cells [][]float32 // per group; nil of an int64 group
	times [][]int64   // label ends per group; nil of a float32 group
}

func (r *csvRenderer) render(dst []byte, s series) ([]byte, error) {
	err := r.p.v.Guard(func() error {
		times, err := r.p.v.Times(s.ticker)
		if err != nil {
			return err
		}
		if err := r.load(s.ticker); err != nil {
			return err
		}
		groups := r.p.s.Meta().Schema.Groups
		counters := r.p.counters(s.ticker)
		r.name = append(appendCSV(r.name[:0], r.p.s.Tickers()[s.ticker]), ',')
		for row := s.from; row < s.to; row++ {
			dst = append(dst, r.name...)
			dst = r.clock.append(dst, times[row])
			for g := range groups {
				if cells := r.cells[g]; cells != nil {
					width := len(groups[g].Columns)
					for i, v := range cells[row*width : (row+1)*width] {
						if texts := r.texts[g]; texts == nil || texts[i] == nil {
							dst = appendCell(append(dst, ','), v)
						} else if dst = append(dst, ','); format.IsCode(v, len(texts[i])) {
							dst = appendCSV(dst, texts[i][int(v)])
						} else if !format.IsMissing(v) {
							return notCode(r.p, s.ticker, groups[g].Columns[i].Name, v)
						}
					}
				} else {
					dst = append(dst, ',')
					if v := r.times[g][row]; v != format.NoTime {
						dst = r.ends[g].append(dst, v)
					}
				}
			}
			for i := range counters {
				dst = strconv.AppendInt(append(dst, ','), int64(counters[i].at(row)), 10)
			}
			dst = append(dst, '\n')
		}
		return nil
	})
	return dst, err
}

// load fetches the cells of a ticker.
func (r *csvRenderer) load(ticker int) (err error) {
	groups := r.p.s.Meta().Schema.Groups
	r.cells, r.times = make([][]float32, len(groups)), make([][]int64, len(groups))
	for g := range groups {
		if groups[g].DType == format.Int64 {
			r.times[g], err = r.p.v.LabelEnds(ticker, g)
		} else {
			r.cells[g], err = r.p.v.Series(ticker, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendCell appends the shortest number that gives the same float32 again; a missing cell is empty.
func appendCell(dst []byte, v float32) []byte {
	if format.IsMissing(v) {
		return dst
	}
	abs := math.Abs(float64(v))
	if abs < 1<<24 && v == float32(int32(v)) && math.Float32bits(v) != 1<<31 { // not of -0
		return strconv.AppendInt(dst, int64(v), 10)
	}
	if v != 0 && (abs < 1e-5 || abs >= 1e16) {
		return strconv.AppendFloat(dst, float64(v), 'e', -1, 32)
	}
	return strconv.AppendFloat(dst, float64(v), 'f', -1, 32)
}

// appendCSV appends a name, quoted where RFC 4180 or a reader that trims blanks needs it.
func appendCSV(dst []byte, name string) []byte {
	if !strings.ContainsAny(name, ",\"\r\n;\t") && name == strings.TrimSpace(name) {
		return append(dst, name...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(name, `"`, `""`)...)
	return append(dst, '"')
}
