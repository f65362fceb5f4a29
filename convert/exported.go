package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/writer"
)

// metadataKey is the key under which `wstore export` says in a table's metadata what it is.
const metadataKey = "wstore"

// exported is the JSON under metadataKey, which docs/export.md describes.
type exported struct {
	Schema int          `json:"schema"`
	Unit   string       `json:"unit"`
	Zone   string       `json:"zone"`
	Ticker string       `json:"ticker"`
	Time   string       `json:"time"`
	Groups []TableGroup `json:"groups"`
	Breaks []TableBreak `json:"breaks"`
	exportedLabels

	unit format.Unit
}

// exportedLabels are what a table says of tickers rather than of its rows.
type exportedLabels struct {
	Empty      []string            `json:"empty_tickers"`
	Attributes []exportedAttribute `json:"attributes"`
}

type exportedAttribute struct {
	Name   string                     `json:"name"`
	Kind   string                     `json:"kind"`
	Values map[string]json.RawMessage `json:"values"`
}

// TableGroup is a group of columns in the metadata of an exported table, which `wstore export` writes.
type TableGroup struct {
	Name    string        `json:"name"`
	Columns []TableColumn `json:"columns"`
}

// TableColumn is a column there. It has one reach at most, durations in the table's unit.
type TableColumn struct {
	Name          string `json:"name"`
	Role          string `json:"role"`
	Categories    bool   `json:"categories,omitempty"`
	ReachRows     *int64 `json:"reach_rows,omitempty"`
	ReachDuration *int64 `json:"reach_duration,omitempty"`
	ReachColumn   string `json:"reach_column,omitempty"`
}

// TableBreak is a break set there: of a rule, or counted in a column of the table.
type TableBreak struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	MaxGap int64  `json:"max_gap,omitempty"`
	Source string `json:"source,omitempty"`
	Column string `json:"column,omitempty"`
}

// saysSchema reports whether options say what is stored.
func (o *Options) saysSchema() bool {
	return o.Ticker != "" || o.DateFromName || o.Time != "" || o.TimeOfDay != "" || o.Zone != "" || o.Columns != nil || o.Wide != "" || o.MaxGap > 0 ||
		len(o.Targets)+len(o.Groups)+len(o.Masks)+len(o.Categories)+len(o.Breaks) > 0
}

// readExported finds out whether the inputs are tables of `wstore export` and the options leave it to them what is stored.
// If they can't be followed, why says so.
func readExported(o *Options, s *ingest.Survey) (t *exported, why string) {
	if o.saysSchema() || !slices.ContainsFunc(s.Metadata, func(m string) bool { return m != "" }) {
		return nil, ""
	}
	var first []byte
	for i, text := range s.Metadata {
		name := s.Sources[i].Path
		if text == "" {
			return nil, name + " has none, unlike others"
		}
		one := &exported{}
		if err := json.Unmarshal([]byte(text), one); err != nil {
			return nil, fmt.Sprintf("those of %s are not read: %s", name, err)
		}
		labels := one.exportedLabels
		one.exportedLabels = exportedLabels{}
		rest, err := json.Marshal(one)
		switch {
		case err != nil:
			return nil, err.Error()
		case t == nil:
			t, first = one, rest
		case string(rest) != string(first):
			return nil, fmt.Sprintf("those of %s differ from those of %s", name, s.Sources[0].Path)
		}
		t.Empty = append(t.Empty, labels.Empty...)
		t.Attributes = append(t.Attributes, labels.Attributes...)
	}
	return t, t.check(s)
}

// check says why a table can't be followed, or nothing.
func (t *exported) check(s *ingest.Survey) string {
	if t.Schema != 1 {
		return fmt.Sprintf("they are of schema %d", t.Schema)
	}
	units := []string{format.Second.String(), format.Millisecond.String(), format.Microsecond.String(), format.Nanosecond.String()}
	at := slices.Index(units, t.Unit)
	if at < 0 {
		return fmt.Sprintf("they have the unit %q", t.Unit)
	}
	t.unit = format.Unit(at)
	// A table that another program has changed since is one of its own.
	columns := map[string]bool{}
	for _, c := range s.Columns {
		columns[c.Name] = true
	}
	lacking := ""
	take := func(name string) {
		if !columns[name] && lacking == "" {
			lacking = name
		}
		delete(columns, name)
	}
	take(t.Ticker)
	take(t.Time)
	ends := map[string]bool{}
	for _, g := range t.Groups {
		for _, c := range g.Columns {
			take(c.Name)
			ends[c.Name] = c.Role == format.LabelEnd.String()
		}
	}
	most := math.MaxInt64 / int64(t.unit.Duration())
	for _, g := range t.Groups {
		for _, c := range g.Columns {
			switch {
			case c.ReachColumn != "" && !ends[c.ReachColumn]:
				return fmt.Sprintf("column %q reaches to %q, which is no column of label ends", c.Name, c.ReachColumn)
			case c.ReachDuration != nil && *c.ReachDuration > most:
				return fmt.Sprintf("the reach of column %q is too long", c.Name)
			}
		}
	}
	for _, b := range t.Breaks {
		switch {
		case b.Kind != format.BreakGap.String():
			take(b.Column)
		case b.MaxGap > most:
			return fmt.Sprintf("the gap of %q is too long", b.Name)
		}
	}
	for _, c := range s.Columns {
		if columns[c.Name] && lacking == "" {
			return fmt.Sprintf("they don't know the column %q", c.Name)
		}
	}
	if lacking != "" {
		return fmt.Sprintf("the table has no column %q of its own", lacking)
	}
	return ""
}

// follow makes options of a table where they are options.
func (t *exported) follow(o *Options) {
	o.Ticker, o.Time, o.Zone = t.Ticker, t.Time, t.Zone
	for _, g := range t.Groups {
		for _, c := range g.Columns {
			if c.Categories {
				o.Categories = append(o.Categories, c.Name)
			}
		}
	}
}

// exported takes groups and break sets over from a table.
func (b *planner) exported() error {
	t := b.table
	per := int64(t.unit.Duration())
	numbers := map[string]int64{}
	for _, g := range t.Groups {
		for _, c := range g.Columns {
			numbers[c.Name] = int64(len(numbers))
		}
	}
	for _, g := range t.Groups {
		group := format.Group{Name: g.Name, DType: format.Float32}
		for _, c := range g.Columns {
			if _, err := b.take(c.Name, "in group "+g.Name); err != nil {
				return err
			}
			column := format.Column{Name: c.Name}
			switch c.Role {
			case format.Mask.String():
				column.Role = format.Mask
			case format.LabelEnd.String():
				column.Role, group.DType = format.LabelEnd, format.Int64
			}
			switch {
			case c.ReachRows != nil:
				column.ReachKind, column.Reach = format.ReachRows, *c.ReachRows
			case c.ReachDuration != nil:
				column.ReachKind, column.Reach = format.ReachDuration, *c.ReachDuration*per
			case c.ReachColumn != "":
				column.ReachKind, column.Reach = format.ReachColumn, numbers[c.ReachColumn]
			}
			group.Columns = append(group.Columns, column)
		}
		b.p.groups = append(b.p.groups, group)
	}
	for _, k := range t.Breaks {
		set := format.BreakSet{Name: k.Name, Kind: format.BreakGiven}
		switch k.Kind {
		case format.BreakGap.String():
			set.Kind, set.MaxGap = format.BreakGap, k.MaxGap*per
			b.p.breaks = append(b.p.breaks, set)
			continue
		case format.BreakColumn.String():
			set.Kind, set.Source = format.BreakColumn, k.Source
		}
		if err := b.breakSet(set, k.Column); err != nil {
			return err
		}
		b.use[b.index[k.Column]] = "a count of breaks"
	}
	return nil
}

// attributes returns the attributes of a table's tickers, but for those of other names.
func (t *exported) attributes(others []writer.Attribute) ([]writer.Attribute, error) {
	var all []writer.Attribute
	for _, from := range t.Attributes {
		if slices.ContainsFunc(others, func(a writer.Attribute) bool { return a.Name == from.Name }) {
			continue
		}
		at := slices.IndexFunc(all, func(a writer.Attribute) bool { return a.Name == from.Name })
		if at < 0 {
			at = len(all)
			all = append(all, writer.Attribute{Name: from.Name})
		}
		a := &all[at]
		bad := func(ticker string) error {
			return fmt.Errorf("the metadata of the inputs have no %s for the attribute %q of ticker %q", from.Kind, from.Name, ticker)
		}
		switch from.Kind {
		case format.Number.String():
			if a.Numbers == nil {
				a.Numbers = map[string]float64{}
			}
			for ticker, text := range from.Values {
				var v float64
				if json.Unmarshal(text, &v) != nil {
					return nil, bad(ticker)
				}
				a.Numbers[ticker] = v
			}
		default:
			if a.Texts == nil {
				a.Texts = map[string]string{}
			}
			for ticker, text := range from.Values {
				var v string
				if json.Unmarshal(text, &v) != nil {
					return nil, bad(ticker)
				}
				a.Texts[ticker] = v
			}
		}
	}
	return all, nil
}
