package format

import "math"

// IsMissing reports whether a cell is stored as missing: NaN or infinite.
func IsMissing(v float32) bool { return math.Float32bits(v)&0x7f800000 == 0x7f800000 }

// Missing returns the value that stands for a missing cell.
func Missing() float32 { return math.Float32frombits(MissingBits) }

// MissingScanner finds the runs of missing rows of each column in row-major cells that come piece by piece. A piece may
// end within a row.
type MissingScanner struct {
	runs  [][]Run
	cell  int64 // number of the next cell
	width int
}

// NewMissingScanner returns a scanner for rows of the given width.
func NewMissingScanner(width int) *MissingScanner {
	return &MissingScanner{runs: make([][]Run, width), width: width}
}

// Reset makes the scanner start anew with a block's first row.
func (s *MissingScanner) Reset() {
	s.cell = 0
	for i := range s.runs {
		s.runs[i] = s.runs[i][:0]
	}
}

// Scan reads the next cells. It returns the index of the first cell that is infinite or a NaN other than the missing
// value, or -1; such cells count as missing.
func (s *MissingScanner) Scan(cells []float32) (odd int) {
	odd = -1
	for i, v := range cells {
		if !IsMissing(v) {
			continue
		}
		if odd < 0 && math.Float32bits(v) != MissingBits {
			odd = i
		}
		k := s.cell + int64(i)
		row, column := k/int64(s.width), k%int64(s.width)
		runs := s.runs[column]
		if n := len(runs); n > 0 && runs[n-1].To == row {
			runs[n-1].To++
		} else {
			s.runs[column] = append(runs, Run{row, row + 1})
		}
	}
	s.cell += int64(len(cells))
	return odd
}

// Runs returns the runs of a column so far. They are valid until the next call of Scan or Reset.
func (s *MissingScanner) Runs(column int) []Run { return s.runs[column] }
