package writer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/wstore/wstore/format"
)

// Attribute is a static value for each ticker: texts or numbers by the ticker's name, of which exactly one is not nil. A
// ticker has no value if it is not named, or has an empty text or a number that is not finite.
type Attribute struct {
	Name    string // 1 to 255 bytes of UTF-8, unlike those of other attributes
	Texts   map[string]string
	Numbers map[string]float64
}

// codes says that the cells at a place of a group's rows are codes of n categories.
type codes struct{ place, n int }

// useCategories checks the categories of the options and keeps them as the file has them.
func (w *Writer) useCategories() error {
	w.codes = make([][]codes, len(w.schema.Groups))
	numbers := map[string]int{}
	places := w.schema.Places()
	for i, p := range places {
		numbers[w.schema.Groups[p.Group].Columns[p.Column].Name] = i
	}
	for _, name := range slices.Sorted(maps.Keys(w.opt.Categories)) {
		number, ok := numbers[name]
		if !ok {
			return fmt.Errorf("categories of column %q, which the schema does not have", name)
		}
		p, texts := places[number], w.opt.Categories[name]
		if role := w.schema.Groups[p.Group].Columns[p.Column].Role; role != format.Value {
			return fmt.Errorf("column %q of role %s can't have categories", name, role)
		}
		if err := format.CheckTexts(texts); err != nil {
			return fmt.Errorf("categories of column %q: %w", name, err)
		}
		w.dictionaries = append(w.dictionaries, format.Dictionary{Column: number, Categories: texts})
		w.codes[p.Group] = append(w.codes[p.Group], codes{p.Column, len(texts)})
	}
	slices.SortFunc(w.dictionaries, func(a, b format.Dictionary) int { return cmp.Compare(a.Column, b.Column) })
	return nil
}

// checkCodes reports a cell that is neither missing nor a code of its column's categories.
func (w *Writer) checkCodes(group int, cells []float32) error {
	columns := w.schema.Groups[group].Columns
	for _, c := range w.codes[group] {
		for i := c.place; i < len(cells); i += len(columns) {
			if v := cells[i]; !format.IsMissing(v) && !format.IsCode(v, c.n) {
				t := &w.tickers[len(w.tickers)-1]
				return fmt.Errorf("ticker %q, row %d: %g in column %q is not the number of one of its %d categories",
					t.name, t.rows+int64(i/len(columns)), v, columns[c.place].Name, c.n)
			}
		}
	}
	return nil
}

// checkAttributes checks what can be checked before the tickers are known.
func (w *Writer) checkAttributes() error {
	if n := len(w.opt.Attributes); n > format.MaxAttributes {
		return fmt.Errorf("%d attributes, at most %d are possible", n, format.MaxAttributes)
	}
	names := map[string]bool{}
	for _, a := range w.opt.Attributes {
		if err := (&format.Attribute{Name: a.Name}).Check(); err != nil {
			return err
		}
		if names[a.Name] {
			return fmt.Errorf("two attributes are named %q", a.Name)
		}
		names[a.Name] = true
		if (a.Texts == nil) == (a.Numbers == nil) {
			return fmt.Errorf("attribute %q must have either texts or numbers", a.Name)
		}
	}
	return nil
}

// attributes returns the attributes as the file has them; the tickers ascend.
func (w *Writer) attributes(tickers []string) ([]*format.Attribute, error) {
	var all []*format.Attribute
	for i := range w.opt.Attributes {
		from := &w.opt.Attributes[i]
		texts, err := byTicker(from.Texts, tickers, "")
		numbers, err2 := byTicker(from.Numbers, tickers, math.NaN())
		if err = cmp.Or(err, err2); err != nil {
			return nil, fmt.Errorf("attribute %q: %w", from.Name, err)
		}
		a := format.NewNumber(from.Name, numbers)
		if from.Texts != nil {
			a = format.NewText(from.Name, texts)
		}
		if err := a.Check(); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *format.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// byTicker returns the value of each ticker, or none where it has no value.
func byTicker[T any](values map[string]T, tickers []string, none T) ([]T, error) {
	all, found := slices.Repeat([]T{none}, len(tickers)), 0
	for i, name := range tickers {
		if v, ok := values[name]; ok {
			all[i] = v
			found++
		}
	}
	if found < len(values) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if _, ok := slices.BinarySearch(tickers, name); !ok {
				return nil, fmt.Errorf("a value of ticker %q, which was not begun", name)
			}
		}
	}
	return all, nil
}
