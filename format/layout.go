package format

import "errors"

// Layout is where the parts of a sealed file stand, SPEC section 6. It follows from the counts alone.
type Layout struct {
	Calendars []int64 // offsets
	Blocks    []int64 // offset of ticker t and group g at index t·G + g; 0 if it has no rows
	DataEnd   int64   // the end of the last block
	Sections  []int64 // offsets, in table order
	Catalog   int64   // offset
	End       int64   // size of the file
	Padding   []Run   // the bytes that must be zero, ascending; those between the slots included
}

var errTooLarge = errors.New("the file would be larger than 2^63-1 bytes")

// PlanData places calendars of the given entries and blocks of the given rows per ticker and bytes per row and group.
func PlanData(align int64, entries, rows, rowBytes []int64) (*Layout, error) {
	l := &Layout{Calendars: make([]int64, len(entries)), Blocks: make([]int64, len(rows)*len(rowBytes))}
	l.Padding = []Run{{SlotSize, SlotStride}, {SlotStride + SlotSize, DataStart}}
	l.DataEnd = DataStart
	for c, n := range entries {
		var err error
		if l.Calendars[c], err = l.place(align, n, 8); err != nil {
			return nil, err
		}
	}
	for g, width := range rowBytes {
		for t, n := range rows {
			if n == 0 {
				continue
			}
			var err error
			if l.Blocks[t*len(rowBytes)+g], err = l.place(align, n, width); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// place reserves n × unit bytes at the next multiple of align behind the end of what there is.
func (l *Layout) place(align, n, unit int64) (int64, error) {
	size, ok := mul(n, unit)
	at, ok2 := alignUp(l.DataEnd, align)
	if !ok || !ok2 || at > 1<<63-1-size {
		return 0, errTooLarge
	}
	if at > l.DataEnd {
		l.Padding = append(l.Padding, Run{l.DataEnd, at})
	}
	l.DataEnd = at + size
	return at, nil
}

// PlanSections places sections of the given lengths and the catalog behind the data.
func (l *Layout) PlanSections(lengths []int64) error {
	data := l.DataEnd
	defer func() { l.DataEnd = data }()
	l.Sections = make([]int64, len(lengths))
	for i, n := range lengths {
		var err error
		if l.Sections[i], err = l.place(SectionAlign, n, 1); err != nil {
			return err
		}
	}
	size := CatalogHead + CatalogEntry*int64(len(lengths))
	var err error
	if l.Catalog, err = l.place(SectionAlign, size, 1); err != nil {
		return err
	}
	l.End = l.Catalog + size
	return nil
}
