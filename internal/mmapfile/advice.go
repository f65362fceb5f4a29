package mmapfile

// Advice says how a mapping will be read.
type Advice uint8

// The kinds of advice.
const (
	Normal     Advice = iota // the system reads ahead of a fault
	Random                   // it reads the page of a fault only
	Sequential               // it reads far ahead
)

// Piece is what the system may read of one announcement, whatever its length: read_ahead_kb is 128 on stock systems.
const Piece = 128 << 10

// Pages widens a range of bytes to whole pages.
func Pages(from, to int64) (int64, int64) {
	return from - from%pageSize, to + (pageSize-to%pageSize)%pageSize
}

// Advise tells the system how the mapping will be read. It is advice: where there is no way to give it, nothing happens.
func (m *Map) Advise(a Advice) { advise(m.m, a) }

// WillNeed asks the system to read n bytes from off on in the background: announce no more than Piece at once. Bytes
// outside the mapping are left out.
func (m *Map) WillNeed(off, n int64) {
	from, to := Pages(max(0, off), off+n)
	if to = min(to, int64(len(m.m))); from < to {
		willNeed(m.m[from:to])
	}
}
