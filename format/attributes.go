package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// AttributeKind is the type of an attribute's values.
type AttributeKind uint8

// The kinds of attributes, SPEC section 5.9.
const (
	Text   AttributeKind = 1
	Number AttributeKind = 2
)

func (k AttributeKind) String() string { return [...]string{1: "text", 2: "number"}[k] }

// Attribute is a static value for each ticker, SPEC section 5.9. [NewText] and [NewNumber] make one.
type Attribute struct {
	Name    string
	Kind    AttributeKind
	Texts   []string  // of Text: the distinct values, ascending by bytes
	Codes   []uint32  // of Text, by ticker: 0 if it is missing, else its place in Texts plus 1
	Numbers []float64 // of Number, by ticker: finite, or NaN if it is missing
}

// NewText returns an attribute of texts, one by ticker; an empty one is missing.
func NewText(name string, values []string) *Attribute {
	a := &Attribute{Name: name, Kind: Text, Texts: slices.Clone(values), Codes: make([]uint32, len(values))}
	slices.Sort(a.Texts)
	a.Texts = slices.Compact(a.Texts)
	if len(a.Texts) > 0 && a.Texts[0] == "" {
		a.Texts = a.Texts[1:]
	}
	for i, v := range values {
		if k, found := slices.BinarySearch(a.Texts, v); found {
			a.Codes[i] = uint32(k) + 1
		}
	}
	return a
}

// NewNumber returns an attribute of numbers, one by ticker; one that is not finite is missing.
func NewNumber(name string, values []float64) *Attribute {
	a := &Attribute{Name: name, Kind: Number, Numbers: slices.Clone(values)}
	for i, v := range values {
		if !finite(v) {
			a.Numbers[i] = math.Float64frombits(NoNumber)
		}
	}
	return a
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Text returns the text of a ticker, by its number, and whether there is one.
func (a *Attribute) Text(ticker int) (text string, ok bool) {
	if a.Kind != Text || a.Codes[ticker] == 0 {
		return "", false
	}
	return a.Texts[a.Codes[ticker]-1], true
}

// Number returns the number of a ticker, by its number, or NaN if there is none.
func (a *Attribute) Number(ticker int) float64 {
	if a.Kind != Number {
		return math.NaN()
	}
	return a.Numbers[ticker]
}

// Check reports what no file can hold of an attribute: its name or its texts. Writers call it before they write.
func (a *Attribute) Check() error {
	switch {
	case a.Name == "":
		return fmt.Errorf("an attribute has no name")
	case len(a.Name) > MaxName:
		return fmt.Errorf("the name of attribute %.40q… has %d bytes, at most %d are possible", a.Name, len(a.Name), MaxName)
	case !utf8.ValidString(a.Name):
		return fmt.Errorf("the name of attribute %q is not valid UTF-8", a.Name)
	}
	if err := CheckTexts(a.Texts); err != nil {
		return fmt.Errorf("attribute %q: %w", a.Name, err)
	}
	return nil
}

// AppendAttributes appends the bytes of `STAT`, or nothing without attributes. They must ascend by name, and be as
// NewText and NewNumber make them.
func AppendAttributes(dst []byte, all []*Attribute) []byte {
	if len(all) == 0 {
		return dst
	}
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(len(all)))
	for _, a := range all {
		dst = append(appendStr(dst, a.Name), byte(a.Kind))
		if a.Kind == Text {
			dst = appendTexts(dst, a.Texts)
		}
		for _, v := range a.Codes {
			dst = le.AppendUint32(dst, v)
		}
		for _, v := range a.Numbers {
			dst = le.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst
}

// DecodeAttributes decodes the bytes of `STAT` of a file of that many tickers, which start at the absolute offset base.
// Only the canonical encoding is accepted: AppendAttributes of the result gives the same bytes.
func DecodeAttributes(b []byte, base int64, tickers int) ([]*Attribute, error) {
	c := cursor{b: b, base: base, section: TagAttributes, code: SectionInvalid}
	n := c.u32("attributes")
	if c.err == nil && (n < 1 || n > MaxAttributes) {
		c.failAt(0, "%d attributes, must be 1 to %d", n, MaxAttributes)
	}
	var all []*Attribute
	before := ""
	for i := uint32(0); i < n && c.err == nil; i++ {
		at := c.pos
		a := &Attribute{Name: c.str("attribute name", 1, MaxName), Kind: AttributeKind(c.u8("kind"))}
		if c.err == nil && a.Name <= before {
			c.failAt(at, "attribute %q is not behind %q", a.Name, before)
		}
		switch a.Kind {
		case Text:
			c.textValues(a, tickers)
		case Number:
			c.numberValues(a, tickers)
		default:
			c.failAt(c.pos-1, "attribute %q has kind %d, must be 1 or 2", a.Name, a.Kind)
		}
		all, before = append(all, a), a.Name
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	return all, nil
}

func (c *cursor) textValues(a *Attribute, tickers int) {
	a.Texts = c.texts("texts")
	at := c.pos
	b := c.take(4*uint64(tickers), "codes")
	if c.err != nil {
		return
	}
	a.Codes = make([]uint32, tickers)
	used := make([]bool, len(a.Texts))
	for i := range a.Codes {
		v := binary.LittleEndian.Uint32(b[4*i:])
		switch {
		case uint64(v) > uint64(len(a.Texts)):
			c.failAt(at+4*i, "code %d of ticker %d and attribute %q, must be 0 to %d", v, i, a.Name, len(a.Texts))
			return
		case v > 0:
			used[v-1] = true
		}
		a.Codes[i] = v
	}
	if k := slices.Index(used, false); k >= 0 {
		c.failAt(at, "no ticker has text %.40q of attribute %q", a.Texts[k], a.Name)
	}
}

func (c *cursor) numberValues(a *Attribute, tickers int) {
	at := c.pos
	b := c.take(8*uint64(tickers), "numbers")
	if c.err != nil {
		return
	}
	a.Numbers = make([]float64, tickers)
	for i := range a.Numbers {
		bits := binary.LittleEndian.Uint64(b[8*i:])
		if a.Numbers[i] = math.Float64frombits(bits); bits != NoNumber && !finite(a.Numbers[i]) {
			c.failAt(at+8*i, "number %016x of ticker %d and attribute %q is neither finite nor the missing one", bits, i, a.Name)
			return
		}
	}
}
