package ingest

import "math"

// Stats says what Read has read.
type Stats struct {
	Rows         int64  // rows delivered
	Skipped      int64  // rows left out because they could not be parsed (Options.SkipBad)
	FirstSkipped string // the error of the first of them
	Bytes        int64  // bytes of the files, as they are stored
	TimeFormat   string // of Plan.Time, as Options.TimeFormat takes it; "" where the column's type is a time
	// AmbiguousTimes counts local times that happened twice and were decided by Options.AmbiguousTime.
	AmbiguousTimes int64
	Columns        []ColumnStats // parallel to Plan.Floats
}

// ColumnStats says what became of the cells of one float column.
type ColumnStats struct {
	Style       string  // how the numbers are written, such as "decimal comma"; "": plainly
	Missing     int64   // cells stored as missing
	NonFinite   int64   // those of them that read NaN, Inf or -Inf
	Inexact     int64   // numbers whose float32 is not exactly the decimal number in the text
	MaxRelError float64 // largest |stored - text| / |text|, to about 1e-16
}

// add merges the counts of another part of the same column.
func (c *ColumnStats) add(o ColumnStats) {
	c.Missing += o.Missing
	c.NonFinite += o.NonFinite
	c.Inexact += o.Inexact
	c.MaxRelError = max(c.MaxRelError, o.MaxRelError)
}

// inexact counts a number whose float32 f is not the number v in the text.
func (c *ColumnStats) inexact(f float32, v float64) {
	c.Inexact++
	// Without branches on the sign, which would be mispredicted half the time.
	d, v := math.Abs(float64(f)-v), math.Abs(v)
	if d > c.MaxRelError*v { // divide only when it matters
		c.MaxRelError = d / v
	}
}
