package ingest

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// numberStyle is the one way in which the numbers of a column are written. The zero
// value is the plain one: a decimal point and nothing else. Whatever the style, a
// number may have a sign before or behind it, or stand in parentheses, which is
// negative, and end in K, M, B or T, for 10^3 to 10^12.
type numberStyle struct {
	comma    bool   // the decimal separator is a comma, not a point
	group    byte   // between thousands: , or . or a blank or an apostrophe (of any kind); 0: nothing
	percent  bool   // numbers other than 0 end in %, and are divided by 100
	currency string // the sign or code that numbers may have before or behind them
}

// numberStyles are the styles that differ in their separators, the simplest first.
// Those of one decimal separator stand together.
var numberStyles = [8]numberStyle{
	{}, {group: ','}, {group: ' '}, {group: '\''},
	{comma: true}, {comma: true, group: '.'}, {comma: true, group: ' '}, {comma: true, group: '\''},
}

const (
	pointStyles = 0x0f // bits of numberStyles
	commaStyles = 0xf0
)

// currencySigns are the signs and codes of currencies that are recognised.
var currencySigns = []string{"US$", "HK$", "NZ$", "A$", "C$", "R$", "S$", "$", "€", "£", "¥", "₹", "₩", "₽", "₿",
	"USD", "EUR", "GBP", "JPY", "CHF", "CNY", "AUD", "CAD", "NZD", "HKD", "SGD", "SEK", "NOK", "DKK", "INR", "KRW", "TWD", "BRL", "MXN", "ZAR", "PLN", "CZK", "HUF", "ILS", "TRY", "THB", "RUB"}

// signsBefore and signsBehind are the currencySigns by their first and last bytes.
var signsBefore, signsBehind = func() (before, behind [256][]string) {
	for _, s := range currencySigns {
		before[s[0]] = append(before[s[0]], s)
		behind[s[len(s)-1]] = append(behind[s[len(s)-1]], s)
	}
	return before, behind
}()

// blanks and apostrophes are what stands between thousands, as people type it.
var (
	blanks      = []string{" ", "\u00a0", "\u202f", "\u2009", "\t"}
	apostrophes = []string{"'", "’"}
	minuses     = []string{"-", "\u2212"}
)

// amount is a number taken apart.
type amount struct {
	digits   []byte // with separators and exponent
	negative bool
	power    int // of ten, that the letter at its end or the percent sign means
	percent  bool
	currency string
}

// amountOf takes a cell apart that begins or ends in more than digits. It reports
// whether what remains may be a number in some style.
func amountOf(cell []byte) (a amount, ok bool) {
	b, signed, bracket, letter := cell, false, false, false
	for trimmed := true; trimmed && len(b) > 0 && !isDigit(b[0]); {
		b = trimBlanks(b)
		switch {
		case len(b) > 1 && b[0] == '(' && b[len(b)-1] == ')' && !signed && !bracket:
			b, bracket, signed, a.negative = b[1:len(b)-1], true, true, true
			continue
		case len(b) > 0 && b[0] == '+' && !signed:
			b, signed = b[1:], true
			continue
		}
		var minus, sign string
		if !signed {
			b, minus = cutPrefix(b, minuses)
		}
		if len(b) > 0 && a.currency == "" {
			b, sign = cutPrefix(b, signsBefore[b[0]])
		}
		signed, a.negative = signed || minus != "", a.negative || minus != ""
		a.currency += sign
		trimmed = minus != "" || sign != ""
	}
	for trimmed := true; trimmed && len(b) > 0 && !isDigit(b[len(b)-1]); {
		b = trimBlanks(b)
		if n := len(b); n > 1 && a.power == 0 && (isDigit(b[n-2]) || b[n-2] >= 0x80 || b[n-2] == ' ') {
			switch b[n-1] {
			case '%':
				a.power, a.percent = -2, true
			case 'K', 'k':
				a.power, letter = 3, true
			case 'M':
				a.power, letter = 6, true
			case 'B':
				a.power, letter = 9, true
			case 'T':
				a.power, letter = 12, true
			}
			if a.power != 0 {
				b = b[:n-1]
				continue
			}
		}
		var minus, sign string
		if !signed {
			b, minus = cutSuffix(b, minuses)
		}
		if len(b) > 0 && a.currency == "" {
			b, sign = cutSuffix(b, signsBehind[b[len(b)-1]])
		}
		signed, a.negative = signed || minus != "", a.negative || minus != ""
		a.currency += sign
		trimmed = minus != "" || sign != ""
	}
	a.digits = b
	if a.percent && (a.currency != "" || letter) || a.power != 0 && bytes.ContainsAny(b, "eE") {
		return a, false
	}
	return a, len(b) > 0 && (isDigit(b[0]) || b[0] == '.' || b[0] == ',')
}

// cutPrefix cuts the first of the prefixes that fits off.
func cutPrefix(b []byte, of []string) (rest []byte, cut string) {
	for _, s := range of {
		if bytes.HasPrefix(b, []byte(s)) {
			return b[len(s):], s
		}
	}
	return b, ""
}

// cutSuffix cuts the first of the suffixes that fits off.
func cutSuffix(b []byte, of []string) (rest []byte, cut string) {
	for _, s := range of {
		if bytes.HasSuffix(b, []byte(s)) {
			return b[:len(b)-len(s)], s
		}
	}
	return b, ""
}

// trimBlanks cuts blanks of any kind off both ends.
func trimBlanks(b []byte) []byte {
	for n := -1; n != len(b); {
		n = len(b)
		b, _ = cutPrefix(b, blanks)
		b, _ = cutSuffix(b, blanks)
	}
	return b
}

// plain appends digits without separators and with a decimal point to dst. It
// reports whether they are a number in this style.
func (s *numberStyle) plain(dst, digits []byte) ([]byte, bool) {
	point := byte('.')
	if s.comma {
		point = ','
	}
	first, last, groups, count, pairs, triples := 0, 0, 0, 0, true, true
	leading := digits
	for len(digits) > 0 {
		c := digits[0]
		if isDigit(c) {
			dst, digits = append(dst, c), digits[1:]
			last++
			count++
			continue
		}
		rest := digits
		switch s.group {
		case 0:
		case ' ':
			rest, _ = cutPrefix(digits, blanks)
		case '\'':
			rest, _ = cutPrefix(digits, apostrophes)
		default:
			if c == s.group {
				rest = digits[1:]
			}
		}
		if len(rest) == len(digits) {
			break
		}
		if groups++; groups == 1 {
			first = last
		} else {
			pairs, triples = pairs && last == 2, triples && last == 3
		}
		digits, last = rest, 0
	}
	// 1,234,567 or, in India, 12,34,567
	if groups > 0 && (first < 1 || first > 3 || last != 3 || leading[0] == '0' || !triples && (!pairs || first == 3)) {
		return dst, false
	}
	if len(digits) > 0 && digits[0] == point {
		n := leadingDigits(digits[1:])
		dst = append(append(dst, '.'), digits[1:1+n]...)
		digits = digits[1+n:]
		count += n
	}
	if count == 0 {
		return dst, false
	}
	if len(digits) > 0 && digits[0]|0x20 == 'e' {
		sign := len(digits) > 1 && (digits[1] == '-' || digits[1] == '+')
		n := 1
		if sign {
			n = 2
		}
		if k := leadingDigits(digits[n:]); k > 0 {
			dst, digits = append(dst, digits[:n+k]...), digits[n+k:]
		}
	}
	return dst, len(digits) == 0
}

// fast reports whether scanDecimal alone reads right what it reads.
func (s *numberStyle) fast() bool { return !s.comma && !s.percent }

const (
	badNumber   = "is not a number"
	otherStyle  = "is not written like the numbers of this column (%s)"
	noPercent   = "has no percent sign, while the numbers of this column have"
	somePercent = "has a percent sign, while the first numbers of this column have none"
)

// hintNumber says what to try about a cell that read refuses for a reason.
func hintNumber(reason string) string {
	switch reason {
	case badNumber, noPercent, somePercent:
		return "leave the column out with --columns, or skip such rows with --on-error skip"
	}
	return "say how numbers are written with --decimal and --thousands, or skip such rows with --on-error skip"
}

// read reads a cell. buf is scratch. The reason is "" or what is wrong with a cell
// of kind notNumber.
func (s *numberStyle) read(buf *[]byte, cell []byte) (f float32, v float64, kind numberKind, reason string) {
	cell = trim(cell)
	if len(cell) == 0 || !isDigit(cell[0]) {
		if kind := missingKind(cell); kind != notNumber {
			return missing, 0, kind, ""
		}
	}
	a, ok := amountOf(cell)
	if !ok {
		return 0, 0, notNumber, badNumber
	}
	text := (*buf)[:0]
	if a.negative {
		text = append(text, '-')
	}
	text, ok = s.plain(text, a.digits)
	if !ok {
		if waysOf(a.digits) == 0 {
			return 0, 0, notNumber, badNumber
		}
		return 0, 0, notNumber, fmt.Sprintf(otherStyle, s)
	}
	switch {
	case a.percent && !s.percent:
		return 0, 0, notNumber, somePercent
	case s.percent && !a.percent && bytes.ContainsAny(a.digits, "123456789"):
		return 0, 0, notNumber, noPercent
	case a.currency != "" && a.currency != s.currency && s.currency == "":
		return 0, 0, notNumber, fmt.Sprintf("is in %s, while the first numbers of this column are in no currency", a.currency)
	case a.currency != "" && a.currency != s.currency:
		return 0, 0, notNumber, fmt.Sprintf("is in %s, while this column is in %s", a.currency, s.currency)
	}
	if a.power != 0 {
		text = shift(text, a.power)
	}
	n := len(text)
	text = append(text, "\n        "...) // the slack that scanDecimal wants
	*buf = text
	f, v, end, kind := scanDecimal(text[:n+1], 0)
	if kind == longNumber || end != n {
		f, v, kind = parseNumber(text[:n])
	}
	return f, v, kind, ""
}

// shift multiplies the text of a number without exponent by 10^power, in place where
// there is room.
func shift(text []byte, power int) []byte {
	point := bytes.IndexByte(text, '.')
	if point < 0 {
		point = len(text)
	} else {
		text = slices.Delete(text, point, point+1)
	}
	first := 0
	if text[0] == '-' {
		first = 1
	}
	point += power
	for ; point < first; point++ {
		text = slices.Insert(text, first, '0')
	}
	if point < len(text) {
		return slices.Insert(text, point, '.')
	}
	for len(text) < point {
		text = append(text, '0')
	}
	return text
}

// String describes what is not plain in a style, or is "plain".
func (s *numberStyle) String() string {
	var parts []string
	if s.comma {
		parts = append(parts, "decimal comma")
	}
	switch s.group {
	case 0:
	case ',':
		parts = append(parts, "commas between thousands")
	case '.':
		parts = append(parts, "points between thousands")
	case ' ':
		parts = append(parts, "blanks between thousands")
	default:
		parts = append(parts, "apostrophes between thousands")
	}
	if s.percent {
		parts = append(parts, "percent, divided by 100")
	}
	if s.currency != "" {
		parts = append(parts, "in "+s.currency)
	}
	if parts == nil {
		return "plain"
	}
	return strings.Join(parts, ", ")
}

// waysOf gives the numberStyles, as bits, that read digits.
func waysOf(digits []byte) (ways uint8) {
	if leadingDigits(digits) == len(digits) && len(digits) > 0 {
		return pointStyles | commaStyles
	}
	var b [64]byte
	for i := range numberStyles {
		if _, ok := numberStyles[i].plain(b[:0], digits); ok {
			ways |= 1 << i
		}
	}
	return ways
}

// numberSample is what the sampled numbers of a column show of their style.
type numberSample struct {
	refuted  uint8 // numberStyles that do not read some number
	marked   bool  // there are separators
	percent  bool
	currency string
}

// add takes a cell into account and reports whether it is a number in some style.
// Whole numbers with a letter behind them (5M) may be something else: lettered.
// What contradicts all earlier cells counts for nothing: Read will say so of its row.
func (s *numberSample) add(cell []byte) (number, lettered bool) {
	if isDecimal(cell) {
		if bytes.IndexByte(cell, '.') >= 0 {
			s.marked = true
			if s.refuted&commaStyles != commaStyles { // 1.234 may be more than a thousand
				s.refute(waysOf(bytes.TrimLeft(cell, "+-")))
			}
		}
		return true, false
	}
	a, ok := amountOf(cell)
	if !ok {
		return false, false
	}
	ways := waysOf(a.digits)
	if ways == 0 {
		return false, false
	}
	s.refute(ways)
	s.percent = s.percent || a.percent
	if s.currency == "" {
		s.currency = a.currency
	}
	marked := bytes.ContainsAny(a.digits, ".,")
	s.marked = s.marked || marked
	return true, a.power > 0 && !marked && a.currency == ""
}

// refute takes it that numbers are written in one of these ways.
func (s *numberSample) refute(ways uint8) {
	if refuted := s.refuted | ^ways; refuted != 0xff {
		s.refuted = refuted
	}
}

// merge adds another part of the same column, which follows.
func (s *numberSample) merge(o *numberSample) {
	s.refute(^o.refuted)
	s.marked = s.marked || o.marked
	s.percent = s.percent || o.percent
	if s.currency == "" {
		s.currency = o.currency
	}
}

// decimals gives the numberStyles, as bits, that the options and the sample leave,
// and whether they agree on the decimal separator.
func (s *numberSample) decimals(options uint8) (ways uint8, decided bool) {
	ways = options &^ s.refuted
	if ways == 0 {
		ways = options // the first cell that contradicts them will say so
	}
	return ways, !s.marked || ways&pointStyles == 0 || ways&commaStyles == 0
}

// stylesOf finds the styles of columns from their samples. A column that leaves
// open what its points and commas mean follows those that don't, if they agree;
// else a point is a decimal point, and a column where that can't be is open.
func stylesOf(samples []numberSample, numeric func(column int) bool, options uint8) (styles []numberStyle, open []bool) {
	styles, open = make([]numberStyle, len(samples)), make([]bool, len(samples))
	var agreed uint8
	for i := range samples {
		if ways, decided := samples[i].decimals(options); decided && samples[i].marked && numeric(i) {
			for _, family := range []uint8{pointStyles, commaStyles} {
				if ways&family != 0 {
					agreed |= family
				}
			}
		}
	}
	for i := range samples {
		s := &samples[i]
		ways, decided := s.decimals(options)
		if !decided {
			switch {
			case agreed == pointStyles || agreed == commaStyles:
				ways &= agreed
			case ways&1 != 0:
				ways = 1
			default:
				open[i] = true
			}
		}
		styles[i] = numberStyles[bits.TrailingZeros8(ways)]
		styles[i].percent, styles[i].currency = s.percent, s.currency
	}
	return styles, open
}

// CheckNumberFormat says what is wrong with Options.Decimal and
// Options.Thousands, and what would be right.
func CheckNumberFormat(decimal, thousands string) error {
	_, err := numberOptions(decimal, thousands)
	return err
}

// numberOptions gives the numberStyles, as bits, that the options allow.
func numberOptions(decimal, thousands string) (ways uint8, err error) {
	var family uint8
	switch decimal {
	case "":
		family = pointStyles | commaStyles
	case "point", ".":
		family = pointStyles
	case "comma", ",":
		family = commaStyles
	default:
		return 0, fmt.Errorf("decimal separator %q; must be point or comma", decimal)
	}
	groups := map[string]byte{"none": 0, "comma": ',', ",": ',', "point": '.', ".": '.', "space": ' ', " ": ' ', "apostrophe": '\'', "'": '\''}
	group, known := groups[thousands]
	if !known && thousands != "" {
		return 0, fmt.Errorf("thousands separator %q; must be none, comma, point, space or apostrophe", thousands)
	}
	for i, s := range numberStyles {
		if family>>i&1 != 0 && (thousands == "" || s.group == group) {
			ways |= 1 << i
		}
	}
	if ways == 0 {
		return 0, fmt.Errorf("decimal and thousands separators are both %q; name two different ones", thousands)
	}
	return ways, nil
}
