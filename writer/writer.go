package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/internal/fsys"
	"github.com/wstore/wstore/internal/mmapfile"
	"github.com/wstore/wstore/reader"
)

var (
	// ErrOrder is matched by calls out of order: Append before Begin, anything after Finish, a ticker twice.
	ErrOrder = errors.New("wstore: writer called out of order")
	// ErrTimes is matched when a ticker's times are not strictly increasing.
	ErrTimes = errors.New("wstore: times are not strictly increasing")
)

// DefaultAlign is the alignment of blocks unless Options say otherwise.
const DefaultAlign = 4096

// Options are the choices of a writer. The zero value is the default.
type Options struct {
	Align     int     // bytes, a power of two from 64 to 65536; 0: DefaultAlign
	Overwrite bool    // replace an existing file
	FS        fsys.FS // nil: the operating system's

	// Categories are those of columns of role value, by the column's name: texts of 1 to 65535 bytes of UTF-8 that
	// strictly ascend by bytes, at most 2^24. A cell of such a column is the place of its category in the list, or
	// missing. Categories that no cell has, and a list without any, are possible.
	Categories map[string][]string
	// Attributes are static values of tickers, in any order. Finish refuses those of tickers that were not begun.
	Attributes []Attribute
}

// Cells are rows × width cells of one group, row-major: F32 of a float32 group, I64 of an int64 group.
type Cells struct {
	F32 []float32
	I64 []int64
}

// Writer writes one file. It is not safe for concurrent use. After an error other than ErrOrder, ErrTimes or a bad
// argument the writer is of no use; call Abort.
type Writer struct {
	path   string
	fs     fsys.FS
	opt    Options
	schema *format.Schema

	rows    *spool // the blocks of all groups
	groups  []*stream
	times   *stream // in a spool of its own, which can be mapped
	tickers []ticker
	names   map[string]struct{}
	lists   []list
	byHash  map[uint64][]int // lists by hash of their times
	index   *format.IndexBuilder
	scan    []*format.MissingScanner // per float32 group

	dictionaries []format.Dictionary // ascending by column
	codes        [][]codes           // of each group

	state  state
	last   int64 // time of the current ticker's last row
	hash   xxhash.Digest
	breaks [][]int64 // of the current ticker, per break set
	buf    []byte
}

type state uint8

const (
	between state = iota // no ticker is open
	inside
	over
)

type ticker struct {
	name   string
	rows   int64
	list   int // of times; -1 without rows
	first  int64
	blocks []block
	breaks [][]int64
}

// Create starts a file that is to have the given name. An existing file is an error that matches fs.ErrExist, unless
// Options say otherwise. The schema and what the options hold are not to be changed afterwards.
func Create(path string, schema *format.Schema, o *Options) (*Writer, error) {
	w := &Writer{path: path, schema: schema, names: map[string]struct{}{}, byHash: map[uint64][]int{}}
	if o != nil {
		w.opt = *o
	}
	if w.fs = w.opt.FS; w.fs == nil {
		w.fs = fsys.OS{}
	}
	if w.opt.Align == 0 {
		w.opt.Align = DefaultAlign
	}
	if a := w.opt.Align; a < 1<<format.MinAlignLog2 || a > 1<<format.MaxAlignLog2 || a&(a-1) != 0 {
		return nil, fmt.Errorf("alignment %d, must be a power of two from %d to %d", a, 1<<format.MinAlignLog2, 1<<format.MaxAlignLog2)
	}
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := w.useCategories(); err != nil {
		return nil, err
	}
	if err := w.checkAttributes(); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil {
		if !w.opt.Overwrite {
			return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		if m := info.Mode(); !m.IsRegular() && m&fs.ModeSymlink == 0 {
			return nil, fmt.Errorf("%s is not a regular file and is not replaced; choose another name", path)
		}
	}
	w.index = format.NewIndexBuilder(len(schema.Breaks))
	w.breaks = make([][]int64, len(schema.Breaks))
	var err error
	if w.rows, err = newSpool(w.fs, path); err != nil {
		return nil, w.broken(err)
	}
	w.rows.behind = newBehind(w.rows.f)
	times, err := newSpool(w.fs, path)
	if err != nil {
		return nil, w.broken(err)
	}
	w.times = newStream(times)
	for _, g := range schema.Groups {
		w.groups = append(w.groups, newStream(w.rows))
		w.scan = append(w.scan, format.NewMissingScanner(len(g.Columns)))
	}
	return w, nil
}

// Begin starts a ticker, of 1 to 255 bytes of UTF-8, and ends the one before. A ticker may have no rows.
func (w *Writer) Begin(name string) error {
	if w.state == over {
		return fmt.Errorf("%w: Begin after the end", ErrOrder)
	}
	if err := format.CheckTicker(name); err != nil {
		return err
	}
	if _, twice := w.names[name]; twice {
		return fmt.Errorf("%w: ticker %q was begun before", ErrOrder, name)
	}
	if len(w.names) == format.MaxTickers {
		return fmt.Errorf("more than %d tickers", format.MaxTickers)
	}
	if err := w.endTicker(); err != nil {
		return err
	}
	w.names[name] = struct{}{}
	w.tickers = append(w.tickers, ticker{name: name, list: -1})
	w.state = inside
	w.hash.Reset()
	w.times.begin()
	for g, s := range w.groups {
		s.begin()
		w.scan[g].Reset()
	}
	return nil
}

// Break puts a break of a set of kind column or given before the ticker's next row. Before the first row and behind the
// last it does nothing. The breaks of gap sets follow from the times.
func (w *Writer) Break(set int) error {
	if w.state != inside {
		return fmt.Errorf("%w: Break without Begin", ErrOrder)
	}
	if set < 0 || set >= len(w.breaks) || w.schema.Breaks[set].Kind == format.BreakGap {
		return fmt.Errorf("break set %d is none that takes breaks", set)
	}
	w.addBreak(set, w.tickers[len(w.tickers)-1].rows)
	return nil
}

func (w *Writer) addBreak(set int, row int64) {
	if b := w.breaks[set]; row > 0 && (len(b) == 0 || b[len(b)-1] < row) {
		w.breaks[set] = append(b, row)
	}
}

// Append adds rows to the current ticker. Times are in the schema's unit and strictly increase from call to call too;
// cells has one entry for each group, with len(times) rows. NaN and infinite cells become missing ones; others of a
// column with categories must be the number of one of them. The slices belong to the caller again when Append returns.
func (w *Writer) Append(times []int64, cells []Cells) error {
	if w.state != inside {
		return fmt.Errorf("%w: Append without Begin", ErrOrder)
	}
	t := &w.tickers[len(w.tickers)-1]
	if len(cells) != len(w.groups) {
		return fmt.Errorf("ticker %q: cells of %d groups, the schema has %d", t.name, len(cells), len(w.groups))
	}
	for g := range cells {
		group := &w.schema.Groups[g]
		want, got, other := len(times)*len(group.Columns), len(cells[g].F32), len(cells[g].I64)
		if group.DType == format.Int64 {
			got, other = other, got
		}
		if got != want || other != 0 {
			return fmt.Errorf("ticker %q: group %q has %d cells for %d rows, must have %d of %s", t.name, group.Name, got+other, len(times), want, group.DType)
		}
		if err := w.checkCodes(g, cells[g].F32); err != nil {
			return err
		}
	}
	last := w.last
	for i, v := range times {
		if t.rows+int64(i) > 0 && v <= last {
			return fmt.Errorf("%w: ticker %q, row %d has %d after %d", ErrTimes, t.name, t.rows+int64(i), v, last)
		}
		last = v
	}
	if len(times) == 0 {
		return nil
	}
	w.gapBreaks(times, t.rows)
	if t.rows == 0 {
		t.first = times[0]
	}
	w.last = last
	t.rows += int64(len(times))
	w.buf = f32.AppendInt64(w.buf[:0], times)
	_, _ = w.hash.Write(w.buf) // never fails
	if err := w.times.write(w.buf); err != nil {
		return w.broken(err)
	}
	for g := range cells {
		if err := w.appendCells(g, cells[g]); err != nil {
			return w.broken(err)
		}
	}
	return nil
}

func (w *Writer) gapBreaks(times []int64, row int64) {
	for set, b := range w.schema.Breaks {
		if b.Kind != format.BreakGap {
			continue
		}
		last := w.last
		for i, v := range times {
			// The difference of two int64 may exceed one, so it is taken as a u64.
			if row+int64(i) > 0 && uint64(v)-uint64(last) > uint64(b.MaxGap) {
				w.addBreak(set, row+int64(i))
			}
			last = v
		}
	}
}

func (w *Writer) appendCells(g int, cells Cells) error {
	if w.schema.Groups[g].DType == format.Int64 {
		w.buf = f32.AppendInt64(w.buf[:0], cells.I64)
		return w.groups[g].write(w.buf)
	}
	values := cells.F32
	if odd := w.scan[g].Scan(values); odd >= 0 {
		values = slices.Clone(values) // those of the caller are never changed
		for i := odd; i < len(values); i++ {
			if format.IsMissing(values[i]) {
				values[i] = format.Missing()
			}
		}
	}
	if f32.Native {
		return w.groups[g].write(f32.Bytes(values))
	}
	w.buf = f32.Append(w.buf[:0], values)
	return w.groups[g].write(w.buf)
}

func (w *Writer) endTicker() error {
	if w.state != inside {
		return nil
	}
	w.state = between
	n := len(w.tickers) - 1
	t := &w.tickers[n]
	column := 0
	for g, s := range w.groups {
		if err := s.flush(); err != nil {
			return w.broken(err)
		}
		t.blocks = append(t.blocks, s.block)
		for c := range w.schema.Groups[g].Columns {
			w.index.AddMissing(column, n, w.scan[g].Runs(c))
			column++
		}
	}
	for set, rows := range w.breaks {
		if k := len(rows); k > 0 && rows[k-1] == t.rows { // no row came behind it
			rows = rows[:k-1]
		}
		w.index.AddBreaks(set, n, rows)
		t.breaks = append(t.breaks, slices.Clone(rows))
		w.breaks[set] = rows[:0]
	}
	return w.endTimes(t)
}

// endTimes keeps the ticker's times unless another ticker has the same.
func (w *Writer) endTimes(t *ticker) error {
	if err := w.times.flush(); err != nil {
		return w.broken(err)
	}
	if t.rows == 0 {
		return nil
	}
	s, start := w.times, w.times.pieces[0].off // one piece: nothing else is written to the spool
	hash := w.hash.Sum64()
	for _, i := range w.byHash[hash] {
		if l := &w.lists[i]; l.rows == t.rows {
			same, err := s.equal(l.start, start, 8*t.rows)
			if err != nil {
				return w.broken(err)
			}
			if same {
				s.undo(start)
				t.list = i
				return nil
			}
		}
	}
	t.list = len(w.lists)
	w.byHash[hash] = append(w.byHash[hash], t.list)
	w.lists = append(w.lists, list{start: start, rows: t.rows, first: t.first, last: w.last, hash: hash, sums: s.sums})
	return nil
}

// broken ends the writer after an error of the file system.
func (w *Writer) broken(err error) error {
	return errors.Join(fmt.Errorf("writing %s: %w", w.path, err), w.Abort())
}

// Abort removes what was written. After Finish, or a second time, it does nothing.
func (w *Writer) Abort() error {
	w.state = over
	var errs []error
	if w.rows != nil {
		errs = append(errs, w.rows.remove())
	}
	if w.times != nil {
		errs = append(errs, w.times.remove())
	}
	w.rows, w.groups, w.times = nil, nil, nil
	return errors.Join(errs...)
}

// Finish lays the file out, syncs it, verifies it with a reader and gives it its name. Provenance is a JSON text that
// says where the data came from; nil leaves it out. If ctx ends, or anything fails, there is no new file and an old one
// is unchanged; only if the directory can't be synced at the very end the new file may have the name. The writer is of
// no use afterwards, unless the provenance was refused.
func (w *Writer) Finish(ctx context.Context, provenance []byte) error {
	if w.state == over {
		return fmt.Errorf("%w: Finish after the end", ErrOrder)
	}
	if provenance != nil && (!json.Valid(provenance) || !utf8.Valid(provenance)) {
		return errors.New("the provenance is not JSON in UTF-8")
	}
	if err := w.endTicker(); err != nil {
		return err
	}
	if err := w.rows.wait(); err != nil {
		return w.broken(err)
	}
	out, err := w.fs.CreateTemp(w.path)
	if err != nil {
		return w.broken(err)
	}
	if err = w.assemble(ctx, out, provenance); err == nil {
		err = w.settle(ctx, out)
	}
	// Closed and aborted first: once the file has its name nothing may fail any more.
	if err = errors.Join(err, out.Close(), w.Abort()); err == nil {
		err = w.fs.Publish(out.Name(), w.path, w.opt.Overwrite)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("writing %s: %w", w.path, err)
	if rest := w.fs.Remove(out.Name()); !errors.Is(rest, fs.ErrNotExist) {
		err = errors.Join(err, rest)
	}
	return err
}

// settle syncs the file, verifies it and removes the spools, all at once.
func (w *Writer) settle(ctx context.Context, out fsys.File) error {
	var wg sync.WaitGroup
	var synced, aborted error
	wg.Go(func() { synced = out.Sync() })
	wg.Go(func() { aborted = w.Abort() })
	checked := check(ctx, out.Name())
	wg.Wait()
	return errors.Join(checked, synced, aborted)
}

// check reads back what was written: what can't be read must not get the name.
func check(ctx context.Context, path string) error {
	s, err := reader.Open(path, &reader.Options{Access: reader.Read})
	if err != nil {
		return err
	}
	return errors.Join(s.Verify(ctx), s.Close())
}

func (w *Writer) assemble(ctx context.Context, out fsys.File, provenance []byte) error {
	order := make([]int, len(w.tickers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(w.tickers[a].name, w.tickers[b].name) })
	times, release, err := w.times.bytes()
	if err != nil {
		return err
	}
	l := lists{w.lists, times}
	var kept []int
	err = mmapfile.Guard(times, func() (err error) {
		kept, err = l.calendars(ctx)
		return err
	})
	if err := errors.Join(err, release()); err != nil {
		return err
	}

	rowBytes := w.schema.RowBytes()
	t := &format.Tickers{}
	var entries, calBytes, blockBytes, capacity []int64
	var calSums, blockSums []byte
	for _, k := range kept {
		entries = append(entries, w.lists[k].rows)
		calBytes = append(calBytes, 8*w.lists[k].rows)
		calSums = append(calSums, w.lists[k].sums...)
	}
	schema := format.AppendSchema(nil, w.schema)
	digest := format.NewDigest(schema, len(order))
	rank := make([]int, len(order))
	sums := make([][]byte, len(rowBytes))
	for i, n := range order {
		rank[n] = i
		tk := &w.tickers[n]
		at, hash := list{}, xxhash.Sum64(nil)
		if tk.list >= 0 {
			at = w.lists[tk.list]
			hash = at.hash
		}
		t.Names = append(t.Names, tk.name)
		t.Calendar = append(t.Calendar, at.calendar)
		t.First = append(t.First, at.entry)
		t.Rows = append(t.Rows, tk.rows)
		for g, b := range tk.blocks {
			capacity = append(capacity, tk.rows)
			blockBytes = append(blockBytes, tk.rows*rowBytes[g])
			blockSums = append(blockSums, b.sums...)
			sums[g] = b.sums
		}
		digest.Ticker(tk.name, tk.rows, hash, sums, tk.breaks)
	}
	attributes, err := w.attributes(t.Names)
	if err != nil {
		return err
	}
	digest.Labels(w.dictionaries, attributes)
	layout, err := format.PlanData(int64(w.opt.Align), entries, t.Rows, rowBytes)
	if err != nil {
		return err
	}
	if err := w.copyData(ctx, out, layout, kept, order, rowBytes); err != nil {
		return err
	}
	cals := &format.Calendars{Extents: *format.NewExtents(layout.Calendars, entries, calBytes, calSums), Entries: entries}
	blocks := &format.Blocks{Extents: *format.NewExtents(layout.Blocks, capacity, blockBytes, blockSums)}
	sum := digest.Sum()
	sections := []section{
		{format.TagBlocks, format.AppendBlocks(nil, blocks, len(order))},
		{format.TagCalendars, format.AppendCalendars(nil, cals)},
		{format.TagCategories, format.AppendCategories(nil, w.dictionaries)},
		{format.TagDigest, sum[:]},
		{format.TagProvenance, provenance},
		{format.TagSchema, schema},
		{format.TagAttributes, format.AppendAttributes(nil, attributes)},
		{format.TagTickers, format.AppendTickers(nil, t)},
		{format.TagIndex, format.AppendIndex(nil, w.index.Build(rank))},
	}
	return w.writeCatalog(out, layout, slices.DeleteFunc(sections, func(s section) bool { return s.b == nil }))
}

type section struct {
	tag string
	b   []byte
}

// writeCatalog writes the sections, the catalog and the slot. They may reach the disk in any order: the file gets its name
// when all of it is there.
func (w *Writer) writeCatalog(out fsys.File, layout *format.Layout, sections []section) error {
	var lengths []int64
	for _, s := range sections {
		lengths = append(lengths, int64(len(s.b)))
	}
	if err := layout.PlanSections(lengths); err != nil {
		return err
	}
	entries := make([]format.Section, len(sections))
	for i, s := range sections {
		entries[i] = format.NewSection(s.tag, s.b)
		entries[i].Offset = layout.Sections[i]
		if _, err := out.WriteAt(s.b, layout.Sections[i]); err != nil {
			return err
		}
	}
	catalog := format.AppendCatalog(nil, entries)
	if _, err := out.WriteAt(catalog, layout.Catalog); err != nil {
		return err
	}
	slot := format.Slot{
		Version: format.Version, End: layout.End, CatalogOffset: layout.Catalog,
		CatalogLength: int64(len(catalog)), CatalogChecksum: xxhash.Sum64(catalog),
	}
	for a := w.opt.Align; a > 1; a >>= 1 {
		slot.AlignLog2++
	}
	_, err := out.WriteAt(format.AppendSlot(nil, slot), 0)
	return err
}

// copyData copies calendars and blocks to their places. What lies between stays a hole, which reads as zeros.
func (w *Writer) copyData(ctx context.Context, out fsys.File, layout *format.Layout, kept, order []int, rowBytes []int64) error {
	g, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	for k := range workers {
		g.Go(func() error {
			buf := make([]byte, 256<<10)
			for i := k; i < len(kept); i += workers {
				l := &w.lists[kept[i]]
				if err := w.times.copyTo(out, layout.Calendars[i], []piece{{l.start, 8 * l.rows}}, buf); err != nil {
					return err
				}
			}
			for i := k; i < len(order); i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				t := &w.tickers[order[i]]
				for j, b := range t.blocks {
					at := layout.Blocks[i*len(rowBytes)+j]
					if err := w.rows.copyTo(out, at, b.pieces, buf); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}
