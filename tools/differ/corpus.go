package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// How many files of each kind are made up.
const (
	mutations = 800
	damages   = 60
	panels    = 120
)

// small is what the fuzzers take for a small file.
const small = 12 << 10

// writeCorpus writes NAME.wst, and for a panel NAME.json with queries. Whatever the vectors hold, names say where a
// file comes from.
func writeCorpus(root, dir string) error {
	put := func(name string, b []byte) error {
		return os.WriteFile(filepath.Join(dir, name), b, 0o666)
	}
	bases, err := validVectors(filepath.Join(root, "spec", "vectors"))
	if err != nil {
		return err
	}
	corpus := filepath.Join(root, "fuzz", "testdata", "fuzz")
	err = each(filepath.Join(corpus, "FuzzOpen"), func(name string, values []string) error {
		b := []byte(values[0])
		if values[1] == "true" {
			b = craft.Dense(b)
		}
		return put("open-"+name+".wst", b)
	})
	if err != nil {
		return err
	}
	err = each(filepath.Join(corpus, "FuzzFixup"), func(name string, values []string) error {
		return put("fixup-"+name+".wst", craft.Mutate(bases, []byte(values[0])))
	})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range mutations {
		input := make([]byte, 40)
		for k := range input {
			input[k] = byte(rng.Uint32())
		}
		input[1] = byte(1 + rng.IntN(2)) // edits: more leave little that opens
		input[2] = byte(rng.IntN(8) / 7) // whether the catalog or the slot changes too
		if err := put(fmt.Sprintf("mutation-%03d.wst", i), craft.Mutate(bases, input)); err != nil {
			return err
		}
	}
	for i := range damages {
		if err := put(fmt.Sprintf("damage-%03d.wst", i), damage(rng, bases[rng.IntN(len(bases))])); err != nil {
			return err
		}
	}
	draw := rapid.Custom(drawPanel)
	for i := range panels {
		p := draw.Example(i)
		queries, err := json.Marshal(p.queries)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("panel-%03d", i)
		if err := put(name+".wst", p.file); err != nil {
			return err
		}
		if err := put(name+".json", queries); err != nil {
			return err
		}
	}
	return nil
}

// validVectors returns the small files that pass verification, by name: those that FuzzFixup edits.
func validVectors(dir string) (files [][]byte, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.wst"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if s, err := reader.OpenBytes(b, &reader.Options{Verify: true}); err == nil && len(b) < small {
			files = append(files, b)
			if err := s.Close(); err != nil {
				return nil, err
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no valid vectors in %s: run in the repository, or give -root", dir)
	}
	return files, nil
}

// each calls f with the values of each input of a fuzz corpus: strings unquoted, others as they are written.
func each(dir string, f func(name string, values []string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var values []string
		for _, line := range lines[1:] { // behind the line of the version
			from, to := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
			if from < 0 || to < from {
				return fmt.Errorf("%s in %s: not a value: %s", e.Name(), dir, line)
			}
			v := line[from+1 : to]
			if strings.HasPrefix(v, `"`) {
				if v, err = strconv.Unquote(v); err != nil {
					return fmt.Errorf("%s in %s: %w", e.Name(), dir, err)
				}
			}
			values = append(values, v)
		}
		if err := f(e.Name(), values); err != nil {
			return err
		}
	}
	return nil
}

// damage changes a file as accidents do: checksums stay as they were.
func damage(rng *rand.Rand, b []byte) []byte {
	b = append([]byte{}, b...)
	switch rng.IntN(4) {
	case 0:
		return b[:rng.IntN(len(b))]
	case 1:
		return append(b, make([]byte, 1+rng.IntN(100))...)
	case 2:
		at := rng.IntN(len(b))
		clear(b[at:min(len(b), at+1+rng.IntN(600))])
		return b
	}
	// Slot 0 or the data and what follows; the zeros between are most of the file.
	at := rng.IntN(len(b) - format.DataStart + format.SlotSize)
	if at >= format.SlotSize {
		at += format.DataStart - format.SlotSize
	}
	b[at] ^= 1 << rng.IntN(8)
	return b
}

// panel is a valid file and queries of it.
type panel struct {
	file    []byte
	queries []windowQuery
}

// day is a day in seconds.
const day = 86400

func drawPanel(t *rapid.T) panel {
	p := oracle.DrawPanel(t)
	c := craft.FromPanel(p)
	if rapid.Bool().Draw(t, "days") && nearNow(p) {
		c.Schema.Unit = rapid.SampledFrom([]format.Unit{format.Second, format.Millisecond, format.Microsecond}).Draw(t, "unit")
		c.Schema.Zone = rapid.SampledFrom([]string{"", "America/New_York", "Asia/Kolkata"}).Draw(t, "zone")
		perSecond := int64(time.Second / c.Schema.Unit.Duration())
		stretch(p, c.Schema, 1_550_000_000*perSecond, day/2*perSecond)
	}
	drawReaches(t, c.Schema)
	var out panel
	for range 6 {
		q := oracle.DrawQuery(t, p)
		w := windowQuery{
			Inputs: q.Inputs, Targets: q.Targets, Optional: q.Optional, Lookback: int(q.Lookback), TargetLength: int(q.TargetLength),
			Stride: int(q.Stride), Breaks: q.Breaks, Tickers: q.Tickers, Where: q.Where,
			From: instantOf(q.From), To: instantOf(q.To),
		}
		for _, h := range q.Horizons {
			w.Horizons = append(w.Horizons, int(h))
		}
		if q.At != nil {
			w.At = []instant{}
		}
		for i := range q.At {
			w.At = append(w.At, *instantOf(&q.At[i]))
		}
		out.queries = append(out.queries, w)
	}
	out.file = c.Build()
	return out
}

// nearNow reports whether all times of a panel are within some decades of the epoch, if they were seconds.
func nearNow(p *oracle.Panel) bool {
	for _, v := range p.DistinctTimes() {
		if v < -1<<31 || v > 1<<31 {
			return false
		}
	}
	return true
}

// stretch makes a panel's first time start, and its unit that many of the schema's.
func stretch(p *oracle.Panel, s *format.Schema, start, unit int64) {
	all := p.DistinctTimes()
	move := func(times []int64) {
		for i, v := range times {
			if v != oracle.NoEnd {
				times[i] = start + (v-all[0])*unit
			}
		}
	}
	for i := range p.Tickers {
		move(p.Tickers[i].Times)
		for _, ends := range p.Tickers[i].Ends {
			move(ends)
		}
	}
	for i := range p.BreakSets {
		p.BreakSets[i].MaxGap *= unit
		s.Breaks[i].MaxGap *= unit
	}
}

// drawReaches declares reaches of any kind for the columns.
func drawReaches(t *rapid.T, s *format.Schema) {
	ends, column := -1, 0
	for _, g := range s.Groups {
		if g.DType == format.Int64 {
			ends = column
		}
		column += len(g.Columns)
	}
	for _, g := range s.Groups {
		for k := range g.Columns {
			c := &g.Columns[k]
			if g.DType == format.Int64 || c.Role != format.Value {
				continue
			}
			switch c.ReachKind = format.ReachKind(rapid.IntRange(0, 3).Draw(t, "reach")); {
			case c.ReachKind == format.ReachRows:
				c.Reach = rapid.Int64Range(0, 6).Draw(t, "rows")
			case c.ReachKind == format.ReachDuration:
				c.Reach = rapid.Int64Range(0, 3).Draw(t, "duration") * rapid.SampledFrom([]int64{1, day}).Draw(t, "units")
			case c.ReachKind == format.ReachColumn && ends >= 0:
				c.Reach = int64(ends)
			default:
				c.ReachKind = 0
			}
		}
	}
}
