package reader

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/f32"
)

// Verify reads the whole file and makes all checks of SPEC section 10, on all cores. The first that fails, in the order
// of the file, is returned as a format.CorruptError. It reads with system calls, so that a failing disk is an error.
// Memory is some hundred KiB a core, one calendar, and a slice for each list of the index.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	for _, check := range []func(context.Context) error{
		s.verifySlots, s.verifyPadding, s.verifySections, s.verifyCalendars, s.verifyBlocks, s.verifyGaps, s.verifyDigest,
	} {
		if err := check(ctx); err != nil {
			return format.WithPath(err, s.path)
		}
	}
	return nil
}

func bad(code format.Code, section string, off int64, detail string, args ...any) error {
	return &format.CorruptError{Section: section, Offset: off, Code: code, Detail: fmt.Sprintf(detail, args...)}
}

func (s *Store) verifySlots(context.Context) error {
	if d := s.meta.Damaged; d != nil {
		return d
	}
	if s.meta.Newest.Sealed() && !s.meta.Unused {
		return bad(format.SlotInvalid, "slot 1", format.SlotStride, "a sealed file has one commit only")
	}
	if s.file != nil {
		if info, err := s.file.Stat(); err != nil {
			return err
		} else if info.Size() != s.size {
			code := format.Truncated
			if info.Size() > s.size {
				code = format.Trailing
			}
			return bad(code, "", min(info.Size(), s.size), "its size changed from %d to %d while it was open", s.size, info.Size())
		}
	}
	return nil
}

func (s *Store) verifyPadding(ctx context.Context) error {
	buf := make([]byte, 1<<format.MaxAlignLog2)
	for _, p := range s.meta.Layout.Padding {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:p.To-p.From]
		if err := s.readInto(b, p.From); err != nil {
			return err
		}
		for i, v := range b {
			if v != 0 {
				return bad(format.PaddingNotZero, "", p.From+int64(i), "%#02x", v)
			}
		}
	}
	return nil
}

// verifySections checks all sections: opening leaves some out, and the file may have changed since.
func (s *Store) verifySections(context.Context) error {
	for i := range s.meta.Sections {
		sec := &s.meta.Sections[i]
		h := xxhash.New()
		if n, err := io.Copy(h, io.NewSectionReader(s.src, sec.Offset, sec.Length)); err != nil {
			return fmt.Errorf("reading section %s at %d of %s: %w", sec.Tag, sec.Offset+n, s.path, err)
		}
		if h.Sum64() != sec.Checksum {
			return bad(format.SectionChecksum, sec.Tag, sec.Offset, "checksum %016x, must be %016x", h.Sum64(), sec.Checksum)
		}
	}
	return nil
}

// chunks reads n bytes from off on chunk by chunk, compares each with its checksum and gives it to use.
func (s *Store) chunks(buf []byte, what string, off, n int64, sums []byte, use func(b []byte, off int64) error) error {
	for n > 0 {
		b := buf[:min(n, format.ChunkSize)]
		if err := s.readInto(b, off); err != nil {
			return err
		}
		if got, want := xxhash.Sum64(b), binary.LittleEndian.Uint64(sums); got != want {
			return bad(format.DataChecksum, what, off, "checksum of %d bytes is %016x, must be %016x", len(b), got, want)
		}
		if err := use(b, off); err != nil {
			return err
		}
		off, n, sums = off+int64(len(b)), n-int64(len(b)), sums[8:]
	}
	return nil
}

// inOrder calls job for 0 … n-1 on all cores, each core with a worker of its own, and returns the error of the lowest
// number that failed.
func inOrder(ctx context.Context, n int, worker func() func(i int) error) error {
	var next atomic.Int64
	var stop atomic.Bool
	var mu sync.Mutex
	failed, first := n, error(nil)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			job := worker()
			for !stop.Load() {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = job(i)
				}
				if err != nil {
					mu.Lock()
					if i < failed {
						failed, first = i, err
					}
					mu.Unlock()
					stop.Store(true) // jobs before i are done or in progress
				}
			}
		})
	}
	wg.Wait()
	return first
}

func (s *Store) verifyCalendars(ctx context.Context) error {
	cals := s.meta.Calendars
	return inOrder(ctx, len(cals.Entries), func() func(int) error {
		buf, times := make([]byte, format.ChunkSize), make([]int64, format.ChunkSize/8)
		return func(i int) error {
			what, last := fmt.Sprintf("calendar %d", i), int64(math.MinInt64)
			var order error
			err := s.chunks(buf, what, cals.Offset[i], 8*cals.Entries[i], cals.Sums(i), func(b []byte, off int64) error {
				t := times[:len(b)/8]
				f32.DecodeInt64(t, b)
				for k, v := range t {
					if v <= last && order == nil && (off > cals.Offset[i] || k > 0) {
						order = bad(format.CalendarOrder, what, off+8*int64(k), "%d after %d", v, last)
					}
					last = v
				}
				return nil
			})
			if err != nil {
				return err
			}
			return order
		}
	})
}

// verifyBlocks checks the blocks group by group, as they stand in the file.
func (s *Store) verifyBlocks(ctx context.Context) error {
	tickers := len(s.meta.Tickers.Names)
	missing := s.missingLists()
	return inOrder(ctx, len(s.meta.Schema.Groups)*tickers, func() func(int) error {
		buf, cells := make([]byte, format.ChunkSize), make([]float32, format.ChunkSize/4)
		return func(i int) error { return s.verifyBlock(i/tickers, i%tickers, missing, buf, cells) }
	})
}

// missingLists returns the runs that the index gives for a ticker and column.
func (s *Store) missingLists() map[[2]int][]format.Run {
	lists := map[[2]int][]format.Run{}
	for _, c := range s.meta.Index.Missing {
		for _, u := range c.Uses {
			lists[[2]int{u.Ticker, c.Column}] = s.meta.Index.MissingLists[u.List]
		}
	}
	return lists
}

func (s *Store) verifyBlock(group, ticker int, missing map[[2]int][]format.Run, buf []byte, cells []float32) error {
	g := &s.meta.Schema.Groups[group]
	at := ticker*len(s.meta.Schema.Groups) + group
	what := fmt.Sprintf("ticker %q, group %q", s.meta.Tickers.Names[ticker], g.Name)
	scan := format.NewMissingScanner(len(g.Columns))
	dictionaries := s.dictionaries(group)
	var odd error
	start := s.meta.Blocks.Offset[at]
	err := s.chunks(buf, what, start, s.Rows(ticker)*g.RowBytes(), s.meta.Blocks.Sums(at), func(b []byte, off int64) error {
		if g.DType != format.Float32 {
			return nil
		}
		v := cells[:len(b)/4]
		f32.Decode(v, b)
		if k := scan.Scan(v); k >= 0 && odd == nil {
			odd = bad(format.CellInvalid, what, off+4*int64(k), "%#08x is neither finite nor the missing value", math.Float32bits(v[k]))
		}
		for _, d := range dictionaries {
			if k := wrongCode(v, (off-start)/4, len(g.Columns), d.Column-s.base[group], len(d.Categories)); k >= 0 && odd == nil {
				odd = bad(format.CellInvalid, what, off+4*int64(k), "%g in column %q is not the number of one of its %d categories",
					v[k], g.Columns[d.Column-s.base[group]].Name, len(d.Categories))
			}
		}
		return nil
	})
	if err != nil || g.DType != format.Float32 {
		return err
	}
	if odd != nil {
		return odd
	}
	for c := range g.Columns {
		if want := missing[[2]int{ticker, s.base[group] + c}]; !slices.Equal(scan.Runs(c), want) {
			return bad(format.IndexMismatch, what, s.meta.Section(format.TagIndex).Offset,
				"column %q has %d runs of missing cells, the index lists %d or others", g.Columns[c].Name, len(scan.Runs(c)), len(want))
		}
	}
	return nil
}

// dictionaries returns those of a group's columns.
func (s *Store) dictionaries(group int) (some []format.Dictionary) {
	for _, d := range s.meta.Categories {
		if s.places[d.Column].Group == group {
			some = append(some, d)
		}
	}
	return some
}

// wrongCode returns the first of a block's cells, which begin with number from, that stands at a place of its row and is
// neither missing nor a code of n categories, or -1.
func wrongCode(cells []float32, from int64, width, place, n int) int {
	first := (place - int(from%int64(width)) + width) % width
	for k := first; k < len(cells); k += width {
		if v := cells[k]; !format.IsMissing(v) && !format.IsCode(v, n) {
			return k
		}
	}
	return -1
}

// breakLists returns the rows of a ticker's breaks for each break set.
func (s *Store) breakLists() [][][]int64 {
	lists := make([][][]int64, len(s.meta.Index.Breaks))
	for set, uses := range s.meta.Index.Breaks {
		lists[set] = make([][]int64, len(s.meta.Tickers.Names))
		for _, u := range uses {
			lists[set][u.Ticker] = s.meta.Index.BreakLists[u.List]
		}
	}
	return lists
}

// verifyGaps compares break sets of kind gap with the times.
func (s *Store) verifyGaps(ctx context.Context) error {
	lists := s.breakLists()
	for set, b := range s.meta.Schema.Breaks {
		if b.Kind != format.BreakGap {
			continue
		}
		err := s.eachTimes(ctx, func(t int, times []int64) error {
			want := lists[set][t]
			for r := 1; r < len(times); r++ {
				listed := len(want) > 0 && want[0] == int64(r)
				if listed {
					want = want[1:]
				}
				if gap := uint64(times[r]) - uint64(times[r-1]); (gap > uint64(b.MaxGap)) != listed {
					return bad(format.IndexMismatch, fmt.Sprintf("ticker %q", s.meta.Tickers.Names[t]), s.meta.Section(format.TagIndex).Offset,
						"break set %q is wrong at row %d, %d after the row before", b.Name, r, gap)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachTimes gives each ticker's times to use; those of equal pieces of a calendar are read once in a row.
func (s *Store) eachTimes(ctx context.Context, use func(t int, times []int64) error) error {
	return s.guard(func() error {
		var failed error
		times := s.timesReader(&failed)
		for t := range s.meta.Tickers.Names {
			v := times(t)
			if err := errors.Join(failed, ctx.Err()); err != nil {
				return err
			}
			if err := use(t, v); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) verifyDigest(ctx context.Context) error {
	m := s.meta
	d := format.NewDigest(m.SchemaBytes, len(m.Tickers.Names))
	lists := s.breakLists()
	groups := len(m.Schema.Groups)
	sums, breaks := make([][]byte, groups), make([][]int64, len(lists))
	known := map[format.Piece]uint64{}
	var buf []byte
	err := s.eachTimes(ctx, func(t int, times []int64) error {
		key := m.Tickers.Piece(t)
		hash, ok := known[key]
		if !ok {
			buf = f32.AppendInt64(buf[:0], times)
			hash = xxhash.Sum64(buf)
			known[key] = hash
		}
		for g := range sums {
			sums[g] = m.Blocks.Sums(t*groups + g)
		}
		for set := range breaks {
			breaks[set] = lists[set][t]
		}
		d.Ticker(m.Tickers.Names[t], m.Tickers.Rows[t], hash, sums, breaks)
		return nil
	})
	if err != nil {
		return err
	}
	d.Labels(m.Categories, m.Attributes)
	if got := d.Sum(); got != m.Digest {
		return bad(format.DigestMismatch, format.TagDigest, m.Section(format.TagDigest).Offset, "%x, must be %x", m.Digest, got)
	}
	return nil
}
