// Package stats has statistics that can be merged: count, mean, sum of squared deviations, minimum and maximum, in
// float64. It is pure. The formulas are those of spec/SPLITS.md section 4.
package stats

import "math"

// Moments are the statistics of some values. The zero value is that of none.
type Moments struct {
	N        int64
	Mean     float64
	M2       float64 // sum of squared deviations from the mean
	Min, Max float64
}

// Add takes a value in (Welford, "Note on a method for calculating corrected sums of squares and products", 1962).
func (m *Moments) Add(v float64) {
	if m.N == 0 {
		m.Min, m.Max = v, v
	} else {
		m.Min, m.Max = min(m.Min, v), max(m.Max, v)
	}
	m.N++
	d := v - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += float64(d * (v - m.Mean)) // rounded here, so that no machine fuses it into the sum
}

// Merge takes the values of other in, which come behind those of m (Chan, Golub, LeVeque, "Updating formulae and a
// pairwise algorithm for computing sample variances", 1979).
func (m *Moments) Merge(other *Moments) {
	switch {
	case other.N == 0:
		return
	case m.N == 0:
		*m = *other
		return
	}
	na, nb := float64(m.N), float64(other.N)
	n := na + nb
	d := other.Mean - m.Mean
	m.Mean += d * nb / n
	m.M2 = m.M2 + other.M2 + d*d*na*nb/n
	m.N += other.N
	m.Min, m.Max = min(m.Min, other.Min), max(m.Max, other.Max)
}

// Std returns the standard deviation, of the values as the whole population; NaN of none.
func (m *Moments) Std() float64 {
	if m.N == 0 {
		return math.NaN()
	}
	return math.Sqrt(m.M2 / float64(m.N))
}

// Standardizer subtracts a mean and divides by a standard deviation, column by column. A column whose deviation is 0, or
// of which fewer than two cells are present, is divided by 1; one without any has mean 0.
type Standardizer struct {
	Mean, Std []float64
}

// NewStandardizer returns the standardiser for columns with the given statistics.
func NewStandardizer(columns []Moments) *Standardizer {
	s := &Standardizer{Mean: make([]float64, len(columns)), Std: make([]float64, len(columns))}
	for i := range columns {
		s.Mean[i], s.Std[i] = columns[i].Mean, 1
		if sd := columns[i].Std(); columns[i].N > 1 && sd > 0 {
			s.Std[i] = sd
		}
	}
	return s
}

// Apply standardises rows of cells in place, row-major with a column for each of the standardiser's. Missing cells stay
// missing; what is left behind the last whole row stays as it is.
func (s *Standardizer) Apply(cells []float32) {
	s.each(cells, func(v float64, c int) float64 { return (v - s.Mean[c]) / s.Std[c] })
}

// Invert undoes Apply, up to rounding.
func (s *Standardizer) Invert(cells []float32) {
	s.each(cells, func(v float64, c int) float64 { return float64(v*s.Std[c]) + s.Mean[c] })
}

func (s *Standardizer) each(cells []float32, f func(v float64, column int) float64) {
	for n := len(s.Mean); n > 0 && len(cells) >= n; cells = cells[n:] {
		for c, v := range cells[:n] {
			if v == v { // not missing
				cells[c] = float32(f(float64(v), c))
			}
		}
	}
}
