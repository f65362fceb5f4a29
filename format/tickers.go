package format

import "encoding/binary"

// Tickers holds the tickers in ascending order of bytes and where their times are, SPEC section 5.2. The slices are
// parallel.
type Tickers struct {
	Names    []string
	Calendar []int64 // number of the ticker's calendar
	First    []int64 // first entry of that calendar which is the ticker's
	Rows     []int64
}

// Piece is the piece of a calendar that holds a ticker's times. Tickers with equal pieces have the same times.
type Piece struct{ Calendar, First, Rows int64 }

// Piece returns the piece of ticker i.
func (t *Tickers) Piece(i int) Piece { return Piece{t.Calendar[i], t.First[i], t.Rows[i]} }

// AppendTickers appends the bytes of `TICK`.
func AppendTickers(dst []byte, t *Tickers) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(t.Names)))
	end := uint64(0)
	for _, n := range t.Names {
		end += uint64(len(n))
		dst = binary.LittleEndian.AppendUint64(dst, end)
	}
	dst = appendSizes(dst, t.Calendar)
	dst = appendSizes(dst, t.First)
	dst = appendSizes(dst, t.Rows)
	for _, n := range t.Names {
		dst = append(dst, n...)
	}
	return dst
}

// DecodeTickers decodes the bytes of `TICK`, which start at the absolute offset base. That the calendars have the
// entries is for [Calendars.CheckTickers].
func DecodeTickers(b []byte, base int64) (*Tickers, error) {
	c := cursor{b: b, base: base, section: TagTickers, code: SectionInvalid}
	n := uint64(c.size("tickers"))
	if n > MaxTickers {
		c.failAt(0, "%d tickers, at most %d are possible", n, MaxTickers)
	}
	ends := c.sizes(n, "name_end")
	t := &Tickers{Calendar: c.sizes(n, "calendar"), First: c.sizes(n, "first"), Rows: c.sizes(n, "rows")}
	names := string(c.take(c.left(), "names"))
	if c.err != nil {
		return nil, c.err
	}
	t.Names = make([]string, n)
	from := int64(0)
	for i, to := range ends {
		if to < from || to > int64(len(names)) {
			c.failAt(8+8*i, "name_end %d of ticker %d, must be %d to %d", to, i, from, len(names))
			return nil, c.err
		}
		t.Names[i] = names[from:to]
		if err := CheckTicker(t.Names[i]); err != nil {
			c.failAt(8+8*i, "ticker %d: %s", i, err)
			return nil, c.err
		}
		if i > 0 && t.Names[i] <= t.Names[i-1] {
			c.failAt(8+8*i, "ticker %q is not behind %q", t.Names[i], t.Names[i-1])
			return nil, c.err
		}
		if t.Rows[i] == 0 && (t.Calendar[i] != 0 || t.First[i] != 0) {
			c.failAt(8+8*(int(n)+i), "ticker %q has no rows, but calendar %d from %d", t.Names[i], t.Calendar[i], t.First[i])
			return nil, c.err
		}
		from = to
	}
	if from != int64(len(names)) {
		c.failAt(len(b)-len(names)+int(from), "%d bytes behind the last name", int64(len(names))-from)
		return nil, c.err
	}
	return t, nil
}
