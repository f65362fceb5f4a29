package convert

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wstore/wstore/format"
)

// Fill gives missing cells of a column a value. No row is added, and the times are as they were.
type Fill struct {
	Column string
	// Forward takes the value of the last row of the ticker that has one, of the same stretch: never from before a break.
	Forward bool
	Max     int // rows without a value that are filled one after the other; 0: all
	// Value is the value otherwise: a number, or one of the categories, or a new one.
	Value string
}

// String is what ParseFill parses.
func (f Fill) String() string {
	switch {
	case !f.Forward:
		return f.Column + "=" + f.Value
	case f.Max == 0:
		return f.Column + "=" + forward
	}
	return f.Column + "=" + forward + ":" + strconv.Itoa(f.Max)
}

const forward = "ffill"

// ParseFill parses `COL=ffill`, `COL=ffill:MAX` and `COL=VALUE`.
func ParseFill(text string) (Fill, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return Fill{}, fmt.Errorf("%q is not COL=ffill, COL=ffill:MAX or COL=VALUE", text)
	}
	rest, ok := strings.CutPrefix(value, forward)
	switch {
	case ok && rest == "":
		return Fill{Column: name, Forward: true}, nil
	case ok && rest[0] == ':':
		n, err := strconv.ParseUint(rest[1:], 10, 31)
		if err != nil || n == 0 {
			return Fill{}, fmt.Errorf("%q: the most rows to fill are a number from 1 to %d", text, math.MaxInt32)
		}
		return Fill{Column: name, Forward: true, Max: int(n)}, nil
	}
	return Fill{Column: name, Value: value}, nil
}

// fill is what is done with the missing cells of one column.
type fill struct {
	Fill
	cell  int     // among the float32 cells of a row
	value float32 // unless Forward

	last   float32 // the stretch's last value; missing: none yet
	run    int     // rows since
	filled int64
}

// fills resolves Options.Fills.
func (b *planner) fills() error {
	seen := map[string]bool{}
	for _, f := range b.o.Fills {
		i, err := b.column(f.Column)
		if err != nil {
			return err
		}
		at, target, column := b.cell(f.Column)
		switch {
		case seen[f.Column]:
			return usage("column %q is filled twice; name it once", f.Column)
		case f.Max < 0 || f.Max > math.MaxInt32:
			return usage("fill %s: the most rows to fill are a number from 1 to %d", f, math.MaxInt32)
		case at < 0 && b.use[i] != "":
			return usage("column %q is %s, and can't be filled", f.Column, b.use[i])
		case at < 0:
			return usage("column %q is not stored, so it can't be filled; name it with --columns", f.Column)
		case column.Role == format.Mask:
			return usage("column %q is a mask, in which missing is a value; it can't be filled", f.Column)
		case target && f.Forward:
			return usage("column %q is a target: a label that was carried forward is of another row; only --fill %s=VALUE can fill it", f.Column, f.Column)
		}
		seen[f.Column] = true
		one := fill{Fill: f, cell: at}
		if !f.Forward && !b.p.cells[at].category {
			v, err := strconv.ParseFloat(f.Value, 32)
			if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(f.Value, "xX_") {
				return usage("fill %s: %q is neither ffill nor a number", f, f.Value)
			}
			one.value = float32(v)
		}
		b.p.fills = append(b.p.fills, one)
	}
	return nil
}

// cell finds the place of a column among the float32 cells, or -1.
func (b *planner) cell(name string) (at int, target bool, column format.Column) {
	for _, g := range b.p.groups {
		for _, c := range g.Columns {
			switch {
			case g.DType != format.Float32:
			case c.Name == name:
				return at, g.Name == "targets" || c.ReachKind != format.ReachNone, c
			default:
				at++
			}
		}
	}
	return -1, false, column
}

// begin forgets what may be carried forward: there is a break.
func (f *fill) begin() { f.last, f.run = format.Missing(), 0 }

// use fills the cell of the stretch's next row.
func (f *fill) use(row []float32) {
	v := &row[f.cell]
	switch {
	case !format.IsMissing(*v):
		f.last, f.run = *v, 0
		return
	case !f.Forward:
		*v = f.value
	case format.IsMissing(f.last) || f.Max > 0 && f.run == f.Max:
		return
	default:
		*v = f.last
	}
	f.run++
	f.filled++
}
