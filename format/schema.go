package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Unit is the unit of a file's times.
type Unit uint8

// The units, SPEC section 5.1.
const (
	Second Unit = iota
	Millisecond
	Microsecond
	Nanosecond
	units
)

// Duration returns the unit as a duration.
func (u Unit) Duration() time.Duration {
	return [units]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}[u]
}

// String returns s, ms, us or ns.
func (u Unit) String() string { return [units]string{"s", "ms", "us", "ns"}[u] }

// Time returns the instant t units after the epoch, in UTC.
func (u Unit) Time(t int64) time.Time {
	per := int64(time.Second / u.Duration())
	sec, rest := t/per, t%per
	return time.Unix(sec, rest*int64(u.Duration())).UTC()
}

// Ceil returns the first number of units that is not before t, saturating at the ends of int64, and whether it is t
// itself.
func (u Unit) Ceil(t time.Time) (v int64, exact bool) {
	per, nanos := int64(time.Second/u.Duration()), int64(u.Duration())
	sec, sub := t.Unix(), (int64(t.Nanosecond())+nanos-1)/nanos
	if sec < 0 { // counted from the second behind t, so that the product is not below the sum
		sec, sub = sec+1, sub-per
		if sec < (math.MinInt64-sub)/per {
			return math.MinInt64, false
		}
	} else if sec > (math.MaxInt64-sub)/per {
		return math.MaxInt64, false
	}
	return sec*per + sub, int64(t.Nanosecond())%nanos == 0
}

// DType is the type of a group's cells.
type DType uint8

// The types, SPEC section 5.1.
const (
	Float32 DType = 1
	Int64   DType = 2
)

// Size returns the bytes of a cell.
func (d DType) Size() int64 {
	if d == Int64 {
		return 8
	}
	return 4
}

func (d DType) String() string {
	if d == Int64 {
		return "int64"
	}
	return "float32"
}

// Role is what a column is for.
type Role uint8

// The roles, SPEC section 5.1.
const (
	Value    Role = iota
	Mask          // present or missing: who may be an anchor
	LabelEnd      // times at which labels end; never an input
	roles
)

func (r Role) String() string { return [roles]string{"value", "mask", "label_end"}[r] }

// ReachKind says how a column's reach is given.
type ReachKind uint8

// The kinds of reach, SPEC section 5.1.
const (
	ReachNone     ReachKind = iota // none declared
	ReachRows                      // a number of rows
	ReachDuration                  // an amount of time, in units of the file
	ReachColumn                    // the number of a column of label ends
	reachKinds
)

func (k ReachKind) String() string {
	return [reachKinds]string{"none", "rows", "duration", "column"}[k]
}

// Column is a column of a group.
type Column struct {
	Name      string
	Role      Role
	ReachKind ReachKind
	Reach     int64 // rows, time units or a column's number, by kind
}

// Group is a set of columns that are stored together, row-major.
type Group struct {
	Name    string
	DType   DType
	Columns []Column
}

// RowBytes returns the bytes of one row.
func (g *Group) RowBytes() int64 { return int64(len(g.Columns)) * g.DType.Size() }

// BreakKind says where a break set comes from.
type BreakKind uint8

// The kinds of break sets, SPEC section 5.1.
const (
	BreakGap    BreakKind = 1 // where the time since the row before is strictly greater than MaxGap
	BreakColumn BreakKind = 2 // where a column of the source changed
	BreakGiven  BreakKind = 3 // where the writer was told to
)

func (k BreakKind) String() string { return [...]string{1: "gap", 2: "column", 3: "given"}[k] }

// BreakSet is a named set of breaks and its rule.
type BreakSet struct {
	Name   string
	Kind   BreakKind
	MaxGap int64  // of BreakGap, in units of the file
	Source string // of BreakColumn, the column's name
}

// Schema says what a file's rows hold, SPEC section 5.1. Columns are numbered across groups.
type Schema struct {
	Unit   Unit
	Zone   string // IANA name of the source's zone; empty: naive or UTC
	Groups []Group
	Breaks []BreakSet
}

// Columns returns the number of columns in all groups.
func (s *Schema) Columns() int {
	n := 0
	for i := range s.Groups {
		n += len(s.Groups[i].Columns)
	}
	return n
}

// RowBytes returns the bytes of one row of each group.
func (s *Schema) RowBytes() []int64 {
	b := make([]int64, len(s.Groups))
	for i := range s.Groups {
		b[i] = s.Groups[i].RowBytes()
	}
	return b
}

// Place is where a column stands.
type Place struct{ Group, Column int }

// Places returns the place of each column by its number.
func (s *Schema) Places() []Place {
	var p []Place
	for g := range s.Groups {
		for c := range s.Groups[g].Columns {
			p = append(p, Place{g, c})
		}
	}
	return p
}

// Validate reports the first rule of SPEC section 5.1 that the schema breaks. Writers call it before they write.
func (s *Schema) Validate() error {
	name := func(what, n string) error {
		switch {
		case len(n) == 0:
			return fmt.Errorf("a %s has no name", what)
		case len(n) > MaxName:
			return fmt.Errorf("the name of %s %.40q… has %d bytes, at most %d are possible", what, n, len(n), MaxName)
		case !utf8.ValidString(n):
			return fmt.Errorf("the name of %s %q is not valid UTF-8", what, n)
		}
		return nil
	}
	if s.Unit >= units {
		return fmt.Errorf("time unit %d does not exist", s.Unit)
	}
	if len(s.Zone) > MaxName || !utf8.ValidString(s.Zone) {
		return fmt.Errorf("the zone %.40q is not a name of at most %d bytes", s.Zone, MaxName)
	}
	if len(s.Groups) < 1 || len(s.Groups) > MaxGroups {
		return fmt.Errorf("%d groups, must be 1 to %d", len(s.Groups), MaxGroups)
	}
	if n := s.Columns(); n > MaxColumns {
		return fmt.Errorf("%d columns, at most %d are possible", n, MaxColumns)
	}
	groups, columns := map[string]bool{}, map[string]bool{}
	places := s.Places()
	for gi := range s.Groups {
		g := &s.Groups[gi]
		if err := name("group", g.Name); err != nil {
			return err
		}
		if groups[g.Name] {
			return fmt.Errorf("two groups are named %q", g.Name)
		}
		groups[g.Name] = true
		if g.DType != Float32 && g.DType != Int64 {
			return fmt.Errorf("group %q has dtype %d, must be 1 or 2", g.Name, g.DType)
		}
		if len(g.Columns) == 0 || g.DType == Int64 && len(g.Columns) != 1 {
			return fmt.Errorf("%s group %q has %d columns", g.DType, g.Name, len(g.Columns))
		}
		for ci := range g.Columns {
			c := &g.Columns[ci]
			if err := name("column", c.Name); err != nil {
				return err
			}
			if columns[c.Name] {
				return fmt.Errorf("two columns are named %q", c.Name)
			}
			columns[c.Name] = true
			if c.Role >= roles || (c.Role == LabelEnd) != (g.DType == Int64) {
				return fmt.Errorf("column %q of %s group %q has role %d", c.Name, g.DType, g.Name, c.Role)
			}
			switch c.ReachKind {
			case ReachNone:
				if c.Reach != 0 {
					return fmt.Errorf("column %q has a reach of %d without a kind", c.Name, c.Reach)
				}
			case ReachRows, ReachDuration:
				if c.Role != Value || c.Reach < 0 {
					return fmt.Errorf("column %q with role %s has a reach of %d", c.Name, c.Role, c.Reach)
				}
			case ReachColumn:
				if c.Role != Value || c.Reach < 0 || c.Reach >= int64(len(places)) {
					return fmt.Errorf("the reach of column %q is in column %d, which does not exist", c.Name, c.Reach)
				}
				if p := places[c.Reach]; s.Groups[p.Group].Columns[p.Column].Role != LabelEnd {
					return fmt.Errorf("the reach of column %q is in column %d, which holds no label ends", c.Name, c.Reach)
				}
			default:
				return fmt.Errorf("column %q has reach kind %d, must be 0 to %d", c.Name, c.ReachKind, reachKinds-1)
			}
		}
	}
	for g := range groups {
		if columns[g] {
			return fmt.Errorf("%q names both a group and a column", g)
		}
	}
	if len(s.Breaks) > MaxBreakSets {
		return fmt.Errorf("%d break sets, at most %d are possible", len(s.Breaks), MaxBreakSets)
	}
	sets := map[string]bool{}
	for _, b := range s.Breaks {
		if err := name("break set", b.Name); err != nil {
			return err
		}
		if sets[b.Name] {
			return fmt.Errorf("two break sets are named %q", b.Name)
		}
		sets[b.Name] = true
		if b.Kind < BreakGap || b.Kind > BreakGiven {
			return fmt.Errorf("break set %q has kind %d, must be 1 to 3", b.Name, b.Kind)
		}
		if (b.Kind == BreakGap) != (b.MaxGap > 0) || b.MaxGap < 0 {
			return fmt.Errorf("break set %q of kind %s has a gap of %d", b.Name, b.Kind, b.MaxGap)
		}
		if b.Kind == BreakColumn {
			if err := name("source column", b.Source); err != nil {
				return err
			}
		} else if b.Source != "" {
			return fmt.Errorf("break set %q of kind %s has a source column", b.Name, b.Kind)
		}
	}
	return nil
}

// AppendSchema appends the bytes of `SCHM`. The schema must be valid.
func AppendSchema(dst []byte, s *Schema) []byte {
	le := binary.LittleEndian
	dst = append(dst, byte(s.Unit), 0, 0, 0)
	dst = le.AppendUint32(dst, uint32(len(s.Groups)))
	dst = appendStr(dst, s.Zone)
	for gi := range s.Groups {
		g := &s.Groups[gi]
		dst = appendStr(dst, g.Name)
		dst = append(dst, byte(g.DType), 0)
		dst = le.AppendUint16(dst, uint16(len(g.Columns)))
		for _, c := range g.Columns {
			dst = appendStr(dst, c.Name)
			dst = append(dst, byte(c.Role), byte(c.ReachKind))
			dst = le.AppendUint64(dst, uint64(c.Reach))
		}
	}
	dst = le.AppendUint32(dst, uint32(len(s.Breaks)))
	for _, b := range s.Breaks {
		dst = appendStr(dst, b.Name)
		dst = append(dst, byte(b.Kind))
		dst = le.AppendUint64(dst, uint64(b.MaxGap))
		dst = appendStr(dst, b.Source)
	}
	return dst
}

// DecodeSchema decodes the bytes of `SCHM`, which start at the absolute offset base.
func DecodeSchema(b []byte, base int64) (*Schema, error) {
	c := cursor{b: b, base: base, section: TagSchema, code: SectionInvalid}
	s := &Schema{Unit: Unit(c.u8("time_unit"))}
	c.zero(3, "schema")
	groups := c.u32("groups")
	s.Zone = c.str("zone", 0, MaxName)
	for i := uint32(0); i < groups && c.err == nil; i++ {
		g := Group{Name: c.str("group name", 0, MaxName), DType: DType(c.u8("dtype"))}
		c.zero(1, "group")
		width := c.u16("width")
		for j := uint16(0); j < width && c.err == nil; j++ {
			g.Columns = append(g.Columns, Column{
				Name: c.str("column name", 0, MaxName), Role: Role(c.u8("role")),
				ReachKind: ReachKind(c.u8("reach_kind")), Reach: c.size("reach"),
			})
		}
		s.Groups = append(s.Groups, g)
	}
	sets := c.u32("break_sets")
	for i := uint32(0); i < sets && c.err == nil; i++ {
		s.Breaks = append(s.Breaks, BreakSet{
			Name: c.str("break set name", 0, MaxName), Kind: BreakKind(c.u8("kind")),
			MaxGap: c.size("max_gap"), Source: c.str("source", 0, MaxName),
		})
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, corrupt(SectionInvalid, TagSchema, base, "%s", err)
	}
	return s, nil
}

// ErrName is matched by errors about a ticker's name.
var ErrName = errors.New("wstore: bad ticker name")

// CheckTicker reports whether a name can be a ticker's: 1 to 255 bytes of valid UTF-8.
func CheckTicker(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > MaxName:
		return fmt.Errorf("%w: %.40q… has %d bytes, at most %d are possible", ErrName, name, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %q is not valid UTF-8", ErrName, name)
	}
	return nil
}
