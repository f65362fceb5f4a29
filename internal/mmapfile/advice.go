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

// WillNeed asks the system to read the bytes [from, to) in the background: announce no more than Piece at once. Bytes
// outside the mapping are left out.
func (m *Map) WillNeed(from, to int64) {
	if b := m.pages(from, to); len(b) > 0 {
		willNeed(b)
	}
}

// Populate reads the bytes [from, to), as far as they are not in memory, and maps them, so that using them does not fault.
// It waits. Bytes outside the mapping, and those that can't be read, are left out.
func (m *Map) Populate(from, to int64) {
	if b := m.pages(from, to); len(b) > 0 {
		populate(b)
	}
}

func (m *Map) pages(from, to int64) []byte {
	from, to = Pages(max(0, from), to)
	if to = min(to, int64(len(m.m))); from >= to {
		return nil
	}
	return m.m[from:to]
}
