package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Dictionary holds the categories of a column, SPEC section 5.8: a cell is the place of its category, 0 to
// len(Categories)-1, or missing.
type Dictionary struct {
	Column     int      // its number
	Categories []string // ascending by bytes
}

// IsCode reports whether a cell is a code of n categories, which a missing one is not.
func IsCode(v float32, n int) bool {
	return v >= 0 && v < float32(n) && math.Float32bits(float32(uint32(v))) == math.Float32bits(v)
}

// CheckTexts reports the first rule of SPEC section 5.8 that a list of texts breaks: they strictly ascend by bytes, each
// of 1 to 65535 bytes of valid UTF-8. Writers call it before they write.
func CheckTexts(texts []string) error {
	if len(texts) > MaxTexts {
		return fmt.Errorf("%d texts, at most %d are possible", len(texts), MaxTexts)
	}
	before, total := "", uint64(0)
	for _, s := range texts {
		if err := checkText(s, before); err != nil {
			return err
		}
		before, total = s, total+uint64(len(s))
	}
	if total > math.MaxUint32 {
		return fmt.Errorf("texts of %d bytes in all, at most %d are possible", total, uint32(math.MaxUint32))
	}
	return nil
}

// checkText checks a text and that it stands behind the one before; all do behind the empty one.
func checkText(s, before string) error {
	switch {
	case s == "":
		return fmt.Errorf("the text behind %.40q is empty", before)
	case len(s) > MaxText:
		return fmt.Errorf("text %.40q… has %d bytes, at most %d are possible", s, len(s), MaxText)
	case !utf8.ValidString(s):
		return fmt.Errorf("text %.40q is not valid UTF-8", s)
	case s <= before:
		return fmt.Errorf("text %.40q is not behind %.40q", s, before)
	}
	return nil
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(texts)))
	end := 0
	for _, s := range texts {
		end += len(s)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(end))
	}
	for _, s := range texts {
		dst = append(dst, s...)
	}
	return dst
}

// texts reads a list of texts; it is not nil unless there is an error.
func (c *cursor) texts(what string) []string {
	at := c.pos
	n := c.u32(what)
	if n > MaxTexts {
		c.failAt(at, "%d %s, at most %d are possible", n, what, MaxTexts)
	}
	ends := c.take(4*uint64(n), "ends of "+what)
	if c.err != nil {
		return nil
	}
	end := func(i uint32) int { return int(binary.LittleEndian.Uint32(ends[4*i:])) }
	total := 0
	if n > 0 {
		total = end(n - 1)
	}
	all := string(c.take(uint64(total), what))
	if c.err != nil {
		return nil
	}
	texts := make([]string, n)
	from, before := 0, ""
	for i := range n {
		to := end(i)
		if to < from || to > total {
			c.failAt(at+4+4*int(i), "end %d of text %d, must be %d to %d", to, i, from, total)
			return nil
		}
		texts[i] = all[from:to]
		if err := checkText(texts[i], before); err != nil {
			c.failAt(at+4+4*int(i), "%s", err)
			return nil
		}
		from, before = to, texts[i]
	}
	return texts
}

// AppendCategories appends the bytes of `CATS`, or nothing without dictionaries. They must ascend by column, and their
// texts be as [CheckTexts] wants them.
func AppendCategories(dst []byte, d []Dictionary) []byte {
	if len(d) == 0 {
		return dst
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d)))
	for i := range d {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(d[i].Column))
		dst = appendTexts(dst, d[i].Categories)
	}
	return dst
}

// DecodeCategories decodes the bytes of `CATS`, which start at the absolute offset base. Only the canonical encoding is
// accepted: AppendCategories of the result gives the same bytes.
func DecodeCategories(b []byte, base int64, s *Schema) ([]Dictionary, error) {
	c := cursor{b: b, base: base, section: TagCategories, code: SectionInvalid}
	places := s.Places()
	n := c.u32("columns")
	if c.err == nil && (n < 1 || uint64(n) > uint64(len(places))) {
		c.failAt(0, "%d columns with categories of %d", n, len(places))
	}
	var all []Dictionary
	least := uint32(0)
	for range n {
		at := c.pos
		column := c.u32("column")
		if c.err == nil && (column < least || uint64(column) >= uint64(len(places))) {
			c.failAt(at, "column %d, must be %d to %d", column, least, len(places)-1)
		}
		if c.err != nil {
			return nil, c.err
		}
		p := places[column]
		if col := &s.Groups[p.Group].Columns[p.Column]; col.Role != Value {
			c.failAt(at, "column %q has categories and role %s", col.Name, col.Role)
		}
		all = append(all, Dictionary{Column: int(column), Categories: c.texts("categories")})
		least = column + 1
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	return all, nil
}
