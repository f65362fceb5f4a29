package oracle

import (
	"fmt"
	"math"
)

// Missing is the bits of a missing cell.
const Missing = 0x7fc00000

// NoEnd is the cell of a label end column that has no time.
const NoEnd = math.MinInt64

// Panel is a panel in memory. Columns are numbered across groups, in order.
type Panel struct {
	Groups    []Group
	BreakSets []BreakSet
	// Tickers ascend by the bytes of their names.
	Tickers []Ticker
	// Attributes ascend by the bytes of their names.
	Attributes []Attribute
}

// Group is a set of columns that are stored together.
type Group struct {
	Name string
	// LabelEnd makes the group's one column int64 times, which no query reads.
	LabelEnd bool
	Columns  []Column
}

// Column is a column of a group.
type Column struct {
	Name string
	Mask bool
	// Categories ascend by their bytes; a cell is the place of one, or missing. nil of a column of numbers.
	Categories []string
}

// Attribute is a static value for each ticker.
type Attribute struct {
	Name string
	// Texts has one text per ticker, empty where there is none; nil of numbers.
	Texts []string
	// Numbers has one number per ticker. What is not finite is missing. nil of texts.
	Numbers []float64
}

// BreakSet is a named set of breaks. If MaxGap is not 0, there is a break wherever the time from one row to the next
// is greater; else the breaks are given.
type BreakSet struct {
	Name   string
	MaxGap int64
}

// Ticker is one series.
type Ticker struct {
	Name string
	// Times strictly increase, one per row.
	Times []int64
	// Cells has a slice for each column, one cell per row; nil for label end columns. What is not finite is missing.
	Cells [][]float32
	// Ends has a slice for each column, nil for all but label end columns.
	Ends [][]int64
	// Breaks has the ascending rows before which there is a break for each break set.
	Breaks [][]int64
}

// Columns returns the columns of all groups in order.
func (p *Panel) Columns() []Column {
	var all []Column
	for _, g := range p.Groups {
		all = append(all, g.Columns...)
	}
	return all
}

// Bits returns the bits of a ticker's cell as a store holds them: every NaN and infinity is Missing.
func (t *Ticker) Bits(column int, row int64) uint32 {
	v := t.Cells[column][row]
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return Missing
	}
	return math.Float32bits(v)
}

// IsMissing says whether a ticker's cell is missing.
func (t *Ticker) IsMissing(column int, row int64) bool { return t.Bits(column, row) == Missing }

// Check reports what makes a panel none.
func (p *Panel) Check() error {
	columns := p.Columns()
	labelEnd := make([]bool, 0, len(columns))
	names := map[string]bool{}
	for _, g := range p.Groups {
		if g.LabelEnd && len(g.Columns) != 1 || len(g.Columns) == 0 {
			return fmt.Errorf("oracle: group %q has %d columns", g.Name, len(g.Columns))
		}
		for _, name := range append(columnNames(g.Columns), g.Name) {
			if name == "" || names[name] {
				return fmt.Errorf("oracle: name %q is empty or taken", name)
			}
			names[name] = true
		}
		for range g.Columns {
			labelEnd = append(labelEnd, g.LabelEnd)
		}
	}
	sets := map[string]bool{}
	for _, s := range p.BreakSets {
		if s.Name == "" || sets[s.Name] {
			return fmt.Errorf("oracle: break set name %q is empty or taken", s.Name)
		}
		sets[s.Name] = true
	}
	for i, a := range p.Attributes {
		if a.Name == "" || i > 0 && a.Name <= p.Attributes[i-1].Name {
			return fmt.Errorf("oracle: attribute %q is empty or out of order", a.Name)
		}
		if (a.Texts == nil) == (a.Numbers == nil) || len(a.Texts)+len(a.Numbers) != len(p.Tickers) {
			return fmt.Errorf("oracle: attribute %q has %d texts and %d numbers of %d tickers", a.Name, len(a.Texts), len(a.Numbers), len(p.Tickers))
		}
	}
	for i, t := range p.Tickers {
		if t.Name == "" || i > 0 && t.Name <= p.Tickers[i-1].Name {
			return fmt.Errorf("oracle: ticker %q is empty or out of order", t.Name)
		}
		if err := t.check(p, labelEnd); err != nil {
			return fmt.Errorf("oracle: ticker %q: %w", t.Name, err)
		}
	}
	return nil
}

func (t *Ticker) check(p *Panel, labelEnd []bool) error {
	rows := len(t.Times)
	for r := 1; r < rows; r++ {
		if t.Times[r] <= t.Times[r-1] {
			return fmt.Errorf("time %d of row %d is not above the one before", t.Times[r], r)
		}
	}
	if len(t.Cells) != len(labelEnd) || len(t.Ends) != len(labelEnd) || len(t.Breaks) != len(p.BreakSets) {
		return fmt.Errorf("%d and %d columns and %d break sets, not %d, %d and %d",
			len(t.Cells), len(t.Ends), len(t.Breaks), len(labelEnd), len(labelEnd), len(p.BreakSets))
	}
	for c, isEnd := range labelEnd {
		cells, ends := rows, 0
		if isEnd {
			cells, ends = 0, rows
		}
		if len(t.Cells[c]) != cells || len(t.Ends[c]) != ends {
			return fmt.Errorf("column %d has %d cells and %d ends, not %d and %d", c, len(t.Cells[c]), len(t.Ends[c]), cells, ends)
		}
	}
	for c, column := range p.Columns() {
		for r := range t.Cells[c] {
			if column.Categories != nil && !t.IsMissing(c, int64(r)) && !isCode(t.Bits(c, int64(r)), len(column.Categories)) {
				return fmt.Errorf("column %d has %v in row %d, which is no code of %d", c, t.Cells[c][r], r, len(column.Categories))
			}
		}
	}
	for s, breaks := range t.Breaks {
		last := int64(0)
		for _, r := range breaks {
			if r <= last || r >= int64(rows) {
				return fmt.Errorf("break %d of set %d", r, s)
			}
			last = r
		}
		if gap := p.BreakSets[s].MaxGap; gap != 0 {
			want := Gaps(t.Times, gap)
			if fmt.Sprint(want) != fmt.Sprint(breaks) {
				return fmt.Errorf("breaks %v of set %d, the gaps are at %v", breaks, s, want)
			}
		}
	}
	return nil
}

// isCode says whether bits are those of a number below n.
func isCode(bits uint32, n int) bool {
	for k := range n {
		if math.Float32bits(float32(k)) == bits {
			return true
		}
	}
	return false
}

// Gaps returns the rows whose time is more than maxGap above that of the row before.
func Gaps(times []int64, maxGap int64) []int64 {
	var rows []int64
	for r := 1; r < len(times); r++ {
		// Times ascend, so that their difference fits unsigned.
		if uint64(times[r])-uint64(times[r-1]) > uint64(maxGap) {
			rows = append(rows, int64(r))
		}
	}
	return rows
}

func columnNames(columns []Column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}
