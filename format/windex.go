package format

import (
	"encoding/binary"
	"slices"
)

// Index is the decoded window index (SPEC section 5.5): for every break set and for every column with missing cells,
// which tickers have which list. Lists are shared: tickers with equal lists refer to the same one. The slices are
// owned by the Index and must not be changed once it is in use.
type Index struct {
	// BreakLists holds ascending rows before which there is a break, each list non-empty.
	BreakLists [][]int64
	// MissingLists holds ascending, maximal runs of missing rows, each list non-empty.
	MissingLists [][]Run
	// Breaks has one entry per break set of the schema: its uses, ascending by ticker, referring to BreakLists.
	Breaks [][]Use
	// Missing has one entry per column with a missing cell, ascending by column, its uses referring to MissingLists.
	Missing []ColumnUses
}

// Run is a half-open range, of rows or of bytes, From < To.
type Run struct{ From, To int64 }

// Use says that a ticker has a list.
type Use struct{ Ticker, List int }

// ColumnUses holds the uses of one column.
type ColumnUses struct {
	Column int
	Uses   []Use
}

func appendBreaks(dst []byte, rows []int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	next := int64(1)
	for _, r := range rows {
		dst = binary.AppendUvarint(dst, uint64(r-next))
		next = r + 1
	}
	return dst
}

func appendRuns(dst []byte, runs []Run) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(runs)))
	next := int64(0)
	for _, r := range runs {
		dst = binary.AppendUvarint(dst, uint64(r.From-next))
		dst = binary.AppendUvarint(dst, uint64(r.To-r.From-1))
		next = r.To + 1
	}
	return dst
}

func appendUses(dst []byte, uses []Use) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(uses)))
	next := 0
	for _, u := range uses {
		dst = binary.AppendUvarint(dst, uint64(u.Ticker-next))
		dst = binary.AppendUvarint(dst, uint64(u.List))
		next = u.Ticker + 1
	}
	return dst
}

// AppendIndex appends the bytes of `WIDX`. The index must be canonical, as those of an [IndexBuilder] and of
// [DecodeIndex] are.
func AppendIndex(dst []byte, ix *Index) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ix.BreakLists)))
	for _, l := range ix.BreakLists {
		dst = appendBreaks(dst, l)
	}
	dst = binary.AppendUvarint(dst, uint64(len(ix.MissingLists)))
	for _, l := range ix.MissingLists {
		dst = appendRuns(dst, l)
	}
	for _, uses := range ix.Breaks {
		dst = appendUses(dst, uses)
	}
	dst = binary.AppendUvarint(dst, uint64(len(ix.Missing)))
	next := 0
	for _, c := range ix.Missing {
		dst = binary.AppendUvarint(dst, uint64(c.Column-next))
		dst = appendUses(dst, c.Uses)
		next = c.Column + 1
	}
	return dst
}

// DecodeIndex decodes the bytes of `WIDX`, which start at the absolute offset base. Only the canonical encoding is
// accepted: AppendIndex of the result gives the same bytes.
func DecodeIndex(b []byte, base int64, t *Tickers, s *Schema) (*Index, error) {
	c := cursor{b: b, base: base, section: TagIndex, code: SectionInvalid}
	ix := &Index{}
	lists := func(what string, unit uint64, one func(n int)) int {
		n := c.count(what, 1+unit)
		distinct := make(map[string]struct{})
		for i := 0; i < n && c.err == nil; i++ {
			at := c.pos
			m := c.count(what+" length", unit)
			if m < 1 {
				c.failAt(at, "%s %d is empty", what, i)
			}
			if c.err != nil {
				return n
			}
			one(m)
			key := string(b[at:c.pos])
			if _, twice := distinct[key]; twice {
				c.failAt(at, "%s %d equals an earlier one", what, i)
			}
			distinct[key] = struct{}{}
		}
		return n
	}
	// step adds a gap to the least possible value; only what stays below 2^62 can be a row.
	step := func(least, gap int64) int64 {
		if gap > 1<<62-least {
			c.fail("a number is above 2^62")
			return least
		}
		return least + gap
	}
	breakLists := lists("break list", 1, func(n int) {
		l, next := make([]int64, 0, n), int64(1)
		for range n {
			r := step(next, c.uvarint("gap"))
			l, next = append(l, r), r+1
			if c.err != nil {
				return
			}
		}
		ix.BreakLists = append(ix.BreakLists, l)
	})
	missingLists := lists("missing list", 2, func(n int) {
		l, next := make([]Run, 0, n), int64(0)
		for range n {
			from := step(next, c.uvarint("gap"))
			to := step(from+1, c.uvarint("length"))
			l, next = append(l, Run{from, to}), to+1
			if c.err != nil {
				return
			}
		}
		ix.MissingLists = append(ix.MissingLists, l)
	})
	uses := func(lists int, seen *int, end func(list int) int64) []Use {
		n := c.count("uses", 2)
		l, next := make([]Use, 0, n), int64(0)
		for range n {
			at := c.pos
			ticker := step(next, c.uvarint("ticker_gap"))
			list := c.uvarint("list")
			switch {
			case c.err != nil:
			case ticker >= int64(len(t.Rows)):
				c.failAt(at, "ticker %d of %d", ticker, len(t.Rows))
			case list >= int64(lists):
				c.failAt(at, "list %d of %d", list, lists)
			case list > int64(*seen):
				c.failAt(at, "list %d is used before list %d", list, *seen)
			case end(int(list)) > t.Rows[ticker]:
				c.failAt(at, "list %d ends at row %d, ticker %q has %d", list, end(int(list)), t.Names[ticker], t.Rows[ticker])
			}
			if c.err != nil {
				return nil
			}
			*seen = max(*seen, int(list)+1)
			l, next = append(l, Use{int(ticker), int(list)}), ticker+1
		}
		return l
	}
	seen := 0
	ix.Breaks = make([][]Use, len(s.Breaks))
	for i := range s.Breaks {
		ix.Breaks[i] = uses(breakLists, &seen, func(l int) int64 { return ix.BreakLists[l][len(ix.BreakLists[l])-1] + 1 })
	}
	if c.err == nil && seen < breakLists {
		c.fail("break list %d is not used", seen)
	}
	seen = 0
	places := s.Places()
	columns := c.count("missing_columns", 4)
	next := int64(0)
	for range columns {
		at := c.pos
		column := step(next, c.uvarint("column_gap"))
		if c.err == nil && column >= int64(len(places)) {
			c.failAt(at, "column %d of %d", column, len(places))
		}
		if c.err == nil && s.Groups[places[column].Group].DType != Float32 {
			c.failAt(at, "column %d is not float32", column)
		}
		u := uses(missingLists, &seen, func(l int) int64 { return ix.MissingLists[l][len(ix.MissingLists[l])-1].To })
		if c.err == nil && len(u) == 0 {
			c.failAt(at, "column %d has no missing cell", column)
		}
		if c.err != nil {
			break
		}
		ix.Missing = append(ix.Missing, ColumnUses{int(column), u})
		next = column + 1
	}
	if c.err == nil && seen < missingLists {
		c.fail("missing list %d is not used", seen)
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	return ix, nil
}

// IndexBuilder collects the lists of tickers in any order and makes the canonical index of them. Equal lists are kept
// once.
type IndexBuilder struct {
	ix           Index
	breaks, runs map[string]int
	missingByCol map[int]int
	scratch      []byte
}

// NewIndexBuilder returns a builder for a schema with the given number of break sets.
func NewIndexBuilder(breakSets int) *IndexBuilder {
	return &IndexBuilder{
		ix:     Index{Breaks: make([][]Use, breakSets)},
		breaks: map[string]int{}, runs: map[string]int{}, missingByCol: map[int]int{},
	}
}

// AddBreaks says that the ticker has the given breaks of the set; at most one call for each pair. The list is copied if
// it is kept.
func (b *IndexBuilder) AddBreaks(set, ticker int, rows []int64) {
	if len(rows) == 0 {
		return
	}
	b.scratch = appendBreaks(b.scratch[:0], rows)
	id, ok := b.breaks[string(b.scratch)]
	if !ok {
		id = len(b.ix.BreakLists)
		b.breaks[string(b.scratch)] = id
		b.ix.BreakLists = append(b.ix.BreakLists, slices.Clone(rows))
	}
	b.ix.Breaks[set] = append(b.ix.Breaks[set], Use{ticker, id})
}

// AddMissing says that the ticker's cells of the column are missing in the given runs; at most one call for each pair.
func (b *IndexBuilder) AddMissing(column, ticker int, runs []Run) {
	if len(runs) == 0 {
		return
	}
	b.scratch = appendRuns(b.scratch[:0], runs)
	id, ok := b.runs[string(b.scratch)]
	if !ok {
		id = len(b.ix.MissingLists)
		b.runs[string(b.scratch)] = id
		b.ix.MissingLists = append(b.ix.MissingLists, slices.Clone(runs))
	}
	at, ok := b.missingByCol[column]
	if !ok {
		at = len(b.ix.Missing)
		b.missingByCol[column] = at
		b.ix.Missing = append(b.ix.Missing, ColumnUses{Column: column})
	}
	b.ix.Missing[at].Uses = append(b.ix.Missing[at].Uses, Use{ticker, id})
}

// Build returns the canonical index in which ticker i of the calls is ticker rank[i]. The builder is of no use after it.
func (b *IndexBuilder) Build(rank []int) *Index {
	ix := b.ix
	slices.SortFunc(ix.Missing, func(a, b ColumnUses) int { return a.Column - b.Column })
	var breaks, missing renumber
	for _, uses := range ix.Breaks {
		breaks.uses(uses, rank)
	}
	for _, c := range ix.Missing {
		missing.uses(c.Uses, rank)
	}
	ix.BreakLists = reorder(ix.BreakLists, breaks.order)
	ix.MissingLists = reorder(ix.MissingLists, missing.order)
	return &ix
}

// renumber gives lists numbers in the order of their first use.
type renumber struct {
	number map[int]int
	order  []int
}

func (r *renumber) uses(uses []Use, rank []int) {
	if r.number == nil {
		r.number = map[int]int{}
	}
	for i := range uses {
		uses[i].Ticker = rank[uses[i].Ticker]
	}
	slices.SortFunc(uses, func(a, b Use) int { return a.Ticker - b.Ticker })
	for i := range uses {
		n, ok := r.number[uses[i].List]
		if !ok {
			n = len(r.order)
			r.number[uses[i].List] = n
			r.order = append(r.order, uses[i].List)
		}
		uses[i].List = n
	}
}

func reorder[T any](lists []T, order []int) []T {
	out := make([]T, len(order))
	for i, from := range order {
		out[i] = lists[from]
	}
	return out
}
