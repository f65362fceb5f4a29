package format_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
)

// decode opens a file as a reader does.
func decode(b []byte) (*format.Meta, error) {
	return format.Decode(int64(len(b)), func(off, n int64) ([]byte, error) {
		if off < 0 || n < 0 || off > int64(len(b))-n {
			return nil, fmt.Errorf("asked for %d bytes at %d of %d", n, off, len(b))
		}
		return slices.Clone(b[off : off+n]), nil
	})
}

// TestFilesOfAnotherEncoder decodes files of an encoder that shares no code, and encodes their sections again.
func TestFilesOfAnotherEncoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := craft.FromPanel(oracle.DrawPanel(t))
		c.AlignLog2 = rapid.SampledFrom([]uint32{6, 9, 12, 16}).Draw(t, "align")
		if rapid.Bool().Draw(t, "provenance?") {
			c.Provenance = []byte(`{"a": 1}`)
		}
		b := c.Build()
		m, err := decode(b)
		require.NoError(t, err)
		require.Equal(t, int64(1)<<c.AlignLog2, m.Newest.Align())
		require.True(t, m.Newest.Sealed())
		require.True(t, m.Unused)
		require.Equal(t, c.Schema, m.Schema)
		require.Equal(t, c.Provenance != nil, m.Section(format.TagProvenance) != nil)
		for i, ticker := range c.Tickers {
			require.Equal(t, ticker.Name, m.Tickers.Names[i])
			require.EqualValues(t, len(ticker.Times), m.Tickers.Rows[i])
		}

		section := func(tag string) []byte {
			s := m.Section(tag)
			return b[s.Offset : s.Offset+s.Length]
		}
		require.Equal(t, section("SCHM"), format.AppendSchema(nil, m.Schema))
		require.Equal(t, section("TICK"), format.AppendTickers(nil, m.Tickers))
		require.Equal(t, section("CALS"), format.AppendCalendars(nil, m.Calendars))
		require.Equal(t, section("BLKS"), format.AppendBlocks(nil, m.Blocks, len(c.Tickers)))
		require.Equal(t, section("WIDX"), format.AppendIndex(nil, m.Index))
		require.Equal(t, section("DGST"), m.Digest[:])
		require.Equal(t, len(c.Categories) > 0, m.Section("CATS") != nil)
		if len(c.Categories) > 0 {
			require.Equal(t, section("CATS"), format.AppendCategories(nil, m.Categories))
		}
		require.Equal(t, len(c.Attributes) > 0, m.Section("STAT") != nil)
		if len(c.Attributes) > 0 {
			require.Equal(t, section("STAT"), format.AppendAttributes(nil, m.Attributes))
		}
		require.Equal(t, b[m.Layout.Catalog:], format.AppendCatalog(nil, m.Sections))
		require.Equal(t, b[:512], format.AppendSlot(nil, m.Newest))

		// The layout accounts for each byte: what is not padding is live.
		for _, p := range m.Layout.Padding {
			require.Less(t, p.From, p.To)
			require.EqualValues(t, p.To-p.From, bytes.Count(b[p.From:p.To], []byte{0}))
		}
		for _, tag := range []string{"SCHM", "TICK", "CALS", "BLKS", "WIDX", "DGST"} {
			require.NoError(t, m.Section(tag).Check(section(tag)))
		}

		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		_, err = decode(b[:cut])
		require.ErrorIs(t, err, format.ErrCorrupt)
		_, err = decode(append(slices.Clone(b), 0))
		require.ErrorIs(t, err, format.Trailing)
	})
}

// sample returns a file of two tickers, two groups and a break set, taken apart.
func sample() *craft.File {
	p := oracle.ExamplePanel()
	p.Groups = append(p.Groups, oracle.Group{Name: "ends", LabelEnd: true, Columns: []oracle.Column{{Name: "end"}}})
	p.Tickers[0].Cells = append(p.Tickers[0].Cells, nil)
	p.Tickers[0].Ends = append(p.Tickers[0].Ends, make([]int64, 10))
	p.Tickers = append(p.Tickers, oracle.Ticker{Name: "B", Cells: make([][]float32, 3), Ends: make([][]int64, 3), Breaks: make([][]int64, 1)})
	c := craft.FromPanel(p)
	c.Provenance = []byte("{}")
	return craft.Split(c.Build())
}

// TestRefusals breaks one rule at a time in a file whose checksums are all right, and expects the code of the
// specification.
func TestRefusals(t *testing.T) {
	le := binary.LittleEndian
	file := func(change func(f *craft.File)) func() []byte {
		return func() []byte {
			f := sample()
			change(f)
			return f.Join()
		}
	}
	put := func(tag string, at int, v uint64) func() []byte {
		return file(func(f *craft.File) { le.PutUint64(f.Section(tag).Bytes[at:], v) })
	}
	slot := func(change func(s *format.Slot)) func() []byte {
		return file(func(f *craft.File) { change(&f.Slot) })
	}
	head := func(at int, v uint64) func() []byte {
		return func() []byte {
			b := sample().Join()
			le.PutUint64(b[at:], v)
			craft.SealSlot(b, 0)
			return b
		}
	}
	entry := func(tag string, at int, v uint64) func() []byte { // of the catalog
		return func() []byte {
			b := sample().Join()
			catalog := int(le.Uint64(b[56:]))
			for i := catalog + 8; i < len(b); i += 40 {
				if string(b[i:i+4]) == tag {
					le.PutUint64(b[i+at:], v)
				}
			}
			craft.SealCatalog(b)
			return b
		}
	}
	raw := func(change func(b []byte) []byte) func() []byte {
		return func() []byte { return change(sample().Join()) }
	}
	for what, c := range map[string]struct {
		make func() []byte
		code format.Code
	}{
		"empty":                       {raw(func(b []byte) []byte { return nil }), format.NotWstore},
		"text":                        {raw(func(b []byte) []byte { return []byte("date,open\n") }), format.NotWstore},
		"magic only":                  {raw(func(b []byte) []byte { return b[:8] }), format.Truncated},
		"slots only":                  {raw(func(b []byte) []byte { return b[:8192] }), format.Truncated},
		"both magics lost":            {raw(func(b []byte) []byte { b[0] = 'x'; return b }), format.NotWstore},
		"slot damaged":                {raw(func(b []byte) []byte { b[100] = 1; return b }), format.SlotDamaged},
		"slot version":                {slot(func(s *format.Slot) { s.Version = 77 }), ""},
		"compat bit":                  {slot(func(s *format.Slot) { s.Compat = 1 << 9 }), ""},
		"ro_compat bit":               {slot(func(s *format.Slot) { s.ROCompat = 1 << 9 }), ""},
		"incompat bit":                {slot(func(s *format.Slot) { s.Incompat = 1 << 9 }), format.Unsupported},
		"open":                        {slot(func(s *format.Slot) { s.Incompat = 1 }), format.Unsupported},
		"commit in the wrong slot":    {slot(func(s *format.Slot) { s.Commit = 3 }), format.SlotInvalid},
		"commit of a sealed file":     {slot(func(s *format.Slot) { s.Commit = 2 }), format.SlotInvalid},
		"alignment 32":                {head(12, 5), format.SlotInvalid},
		"alignment 2^17":              {head(12, 17), format.SlotInvalid},
		"reserved":                    {head(80, 1), format.SlotInvalid},
		"reserved, last":              {head(496, 1<<63), format.SlotInvalid},
		"end above 2^63":              {head(48, 1<<63), format.SlotInvalid},
		"catalog before the data":     {head(56, 8184), format.SlotInvalid},
		"catalog misplaced":           {head(56, 8193), format.SlotInvalid},
		"catalog too long":            {head(64, 1<<62+8), format.SlotInvalid},
		"catalog of odd length":       {head(64, 9), format.SlotInvalid},
		"trailing":                    {raw(func(b []byte) []byte { return append(b, 0) }), format.Trailing},
		"cut":                         {raw(func(b []byte) []byte { return b[:len(b)-1] }), format.Truncated},
		"catalog damaged":             {raw(func(b []byte) []byte { b[len(b)-1]++; return b }), format.CatalogChecksum},
		"section missing":             {file(func(f *craft.File) { f.Remove("WIDX") }), format.CatalogInvalid},
		"unknown section":             {file(func(f *craft.File) { f.Add(craft.Section{Tag: "ABCD", Bytes: []byte("x")}) }), ""},
		"unknown required section":    {file(func(f *craft.File) { f.Add(craft.Section{Tag: "ABCD", Flags: 1, Bytes: []byte("x")}) }), format.Unsupported},
		"tag":                         {file(func(f *craft.File) { f.Add(craft.Section{Tag: "ABCd", Bytes: []byte("x")}) }), format.CatalogInvalid},
		"empty section":               {file(func(f *craft.File) { f.Add(craft.Section{Tag: "ABCD"}) }), format.CatalogInvalid},
		"sections out of order":       {file(func(f *craft.File) { slices.Reverse(f.Sections) }), format.CatalogInvalid},
		"section twice":               {file(func(f *craft.File) { f.Add(*f.Section("TICK")) }), format.CatalogInvalid},
		"key":                         {file(func(f *craft.File) { f.Section("TICK").Key = 1 }), format.CatalogInvalid},
		"key of blocks":               {file(func(f *craft.File) { f.Section("BLKS").Key = 1 }), format.SectionInvalid},
		"blocks twice":                {file(func(f *craft.File) { s := *f.Section("BLKS"); s.Key = 1; f.Add(s) }), format.SectionInvalid},
		"unknown flag":                {file(func(f *craft.File) { f.Add(craft.Section{Tag: "ABCD", Flags: 4, Bytes: []byte("x")}) }), format.CatalogInvalid},
		"flags of a known section":    {file(func(f *craft.File) { f.Section("PROV").Flags = 3 }), format.CatalogInvalid},
		"section in the slots":        {entry("TICK", 16, 4096), format.CatalogInvalid},
		"section misaligned":          {entry("TICK", 16, 8193), format.CatalogInvalid},
		"section in the catalog":      {entry("TICK", 24, 1<<40), format.CatalogInvalid},
		"section above 2^63":          {entry("TICK", 24, 1<<63), format.CatalogInvalid},
		"sections overlap":            {entry("PROV", 24, 16), format.CatalogInvalid},
		"section damaged":             {entry("WIDX", 32, 1), format.SectionChecksum},
		"section moved":               {file(func(f *craft.File) { f.Data = append(f.Data, 0, 0, 0, 0, 0, 0, 0, 0) }), format.LayoutInvalid},
		"digest too short":            {file(func(f *craft.File) { f.Section("DGST").Bytes = make([]byte, 31) }), format.SectionInvalid},
		"too many tickers":            {put("TICK", 0, 1<<24+1), format.SectionInvalid},
		"more tickers than bytes":     {put("TICK", 0, 1<<20), format.SectionInvalid},
		"name without end":            {put("TICK", 8, 0), format.SectionInvalid},
		"name ends before it starts":  {put("TICK", 16, 0), format.SectionInvalid},
		"names too long":              {put("TICK", 16, 99), format.SectionInvalid},
		"bytes behind the names":      {file(func(f *craft.File) { s := f.Section("TICK"); s.Bytes = append(s.Bytes, 'x') }), format.SectionInvalid},
		"names out of order":          {file(func(f *craft.File) { s := f.Section("TICK").Bytes; s[len(s)-1] = 'A' }), format.SectionInvalid},
		"name not UTF-8":              {file(func(f *craft.File) { s := f.Section("TICK").Bytes; s[len(s)-1] = 0xff }), format.SectionInvalid},
		"calendar of no rows":         {put("TICK", 8+8*3, 1), format.SectionInvalid},
		"first of no rows":            {put("TICK", 8+8*5, 1), format.SectionInvalid},
		"unknown calendar":            {put("TICK", 8+8*2, 1), format.SectionInvalid},
		"entries behind the calendar": {put("TICK", 8+8*4, 1), format.SectionInvalid},
		"first above the calendar":    {put("TICK", 8+8*4, 1<<62), format.SectionInvalid},
		"rows above the calendar":     {put("TICK", 8+8*6, 1<<62), format.SectionInvalid},
		"more calendars than bytes":   {put("CALS", 0, 1<<60), format.SectionInvalid},
		"calendar in the slots":       {put("CALS", 8, 4096), format.SectionInvalid},
		"calendar misaligned":         {put("CALS", 8, 8192+8), format.SectionInvalid},
		"calendar misplaced":          {put("CALS", 8, 8192+64), format.LayoutInvalid},
		"calendar without entries":    {put("CALS", 16, 0), format.SectionInvalid},
		"calendar too long":           {put("CALS", 16, 1<<62), format.SectionInvalid},
		"calendar with capacity":      {put("CALS", 24, 11), format.SectionInvalid},
		"checksum too many":           {file(func(f *craft.File) { s := f.Section("CALS"); s.Bytes = append(s.Bytes, make([]byte, 8)...) }), format.SectionInvalid},
		"checksum too few":            {file(func(f *craft.File) { s := f.Section("BLKS"); s.Bytes = s.Bytes[:len(s.Bytes)-8] }), format.SectionInvalid},
		"first ticker":                {put("BLKS", 0, 1), format.SectionInvalid},
		"blocks of other tickers":     {put("BLKS", 8, 3), format.SectionInvalid},
		"block misaligned":            {put("BLKS", 16, 8192+8), format.SectionInvalid},
		"block in the slots":          {put("BLKS", 16, 0), format.SectionInvalid},
		"block misplaced":             {put("BLKS", 16, 8192), format.LayoutInvalid},
		"block of no rows":            {put("BLKS", 16+8*2, 8192), format.SectionInvalid},
		"block with capacity":         {put("BLKS", 16+8*4, 11), format.SectionInvalid},
	} {
		t.Run(what, func(t *testing.T) {
			m, err := decode(c.make())
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.code)
			require.Nil(t, m)
		})
	}
}

// TestSlots checks which of two slots counts.
func TestSlots(t *testing.T) {
	b := sample().Join()
	first := slices.Clone(b[:512])
	copy(b[4096:], first)
	_, err := decode(b)
	require.NoError(t, err, "the second slot has no greater commit")

	b[4096+40] = 1 // commit 1, but the checksum is not right
	m, err := decode(b)
	require.NoError(t, err)
	require.ErrorIs(t, m.Damaged, format.SlotDamaged)
	require.EqualValues(t, 4096, m.Damaged.Offset)
	craft.SealSlot(b, 1)
	_, err = decode(b)
	require.ErrorIs(t, err, format.SlotInvalid, "a sealed file has commit 0")

	clear(b[:512])
	copy(b[4096:], first)
	b[4096+100]++
	_, err = decode(b)
	require.ErrorIs(t, err, format.SlotDamaged)
	var c *format.CorruptError
	require.ErrorAs(t, err, &c)
	require.EqualValues(t, 4096, c.Offset)
}

// TestHostileCounts gives sections that claim far more than they hold; nothing may be allocated for the claim.
func TestHostileCounts(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<23)
	many := craft.Uvarints(1<<62, 1<<40, 1<<40)
	s := &format.Schema{Groups: []format.Group{{Name: "g", DType: format.Float32, Columns: []format.Column{{Name: "c"}}}}}
	none := &format.Tickers{}
	texts := []byte{1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 0} // 2^24-1 of column 0
	for what, f := range map[string]func() error{
		"tickers":   func() error { _, err := format.DecodeTickers(huge, 0); return err },
		"calendars": func() error { _, err := format.DecodeCalendars(huge, 0); return err },
		"blocks": func() error {
			_, err := format.DecodeBlocks(append(make([]byte, 8), huge...), 0, &format.Tickers{Names: make([]string, 1<<23)}, s)
			return err
		},
		"index":      func() error { _, err := format.DecodeIndex(many, 0, none, s); return err },
		"list":       func() error { _, err := format.DecodeIndex(append([]byte{1}, many...), 0, none, s); return err },
		"categories": func() error { _, err := format.DecodeCategories(texts, 0, s); return err },
		"columns":    func() error { _, err := format.DecodeCategories([]byte{255, 255, 255, 255}, 0, s); return err },
		"attributes": func() error { _, err := format.DecodeAttributes([]byte{255, 255, 0, 0}, 0, 1); return err },
		"codes": func() error {
			_, err := format.DecodeAttributes([]byte{1, 0, 0, 0, 1, 0, 'a', 1, 0, 0, 0, 0}, 0, 1<<24)
			return err
		},
		"numbers": func() error {
			_, err := format.DecodeAttributes([]byte{1, 0, 0, 0, 1, 0, 'a', 2}, 0, 1<<24)
			return err
		},
		"schema": func() error {
			_, err := format.DecodeSchema([]byte{0, 0, 0, 0, 255, 255, 255, 255, 0, 0}, 0)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := f()
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, format.SectionInvalid)
			allowed := uint64(1 << 20)
			if what == "blocks" {
				allowed += 16 << 23 // the names themselves
			}
			require.Less(t, after.TotalAlloc-before.TotalAlloc, allowed)
		})
	}
}

// TestIndexHasOneEncoding changes bytes of an index: what still decodes must encode to the same bytes.
func TestIndexHasOneEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := craft.FromPanel(oracle.DrawPanel(t))
		m, err := decode(c.Build())
		require.NoError(t, err)
		b := format.AppendIndex(nil, m.Index)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch v := rapid.Byte().Draw(t, "byte"); rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				b[at] = v
			case 1:
				b = slices.Insert(b, at, v)
			case 2:
				if b = slices.Delete(b, at, at+1); len(b) == 0 {
					b = append(b, v)
				}
			}
		}
		ix, err := format.DecodeIndex(b, 8192, m.Tickers, m.Schema)
		if err != nil {
			require.ErrorIs(t, err, format.SectionInvalid)
			return
		}
		require.Equal(t, b, format.AppendIndex(nil, ix))
	})
}

// TestIndexRefusals breaks each rule of section 5.5.
func TestIndexRefusals(t *testing.T) {
	s := &format.Schema{
		Groups: []format.Group{
			{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "e", Role: format.LabelEnd}}},
			{Name: "g", DType: format.Float32, Columns: []format.Column{{Name: "c"}, {Name: "d"}}},
		},
		Breaks: []format.BreakSet{{Name: "b", Kind: format.BreakGiven}},
	}
	tickers := &format.Tickers{Names: []string{"A", "B"}, Rows: []int64{10, 5}}
	//              break lists    missing lists     uses of the set  columns
	valid := []byte{1, 2, 0, 3 /**/, 1, 1, 2, 1 /**/, 1, 0, 0 /**/, 1, 1, 1, 1, 0}
	ix, err := format.DecodeIndex(valid, 0, tickers, s)
	require.NoError(t, err)
	require.Equal(t, [][]int64{{1, 5}}, ix.BreakLists)
	require.Equal(t, [][]format.Run{{{From: 2, To: 4}}}, ix.MissingLists)
	require.Equal(t, [][]format.Use{{{Ticker: 0, List: 0}}}, ix.Breaks)
	require.Equal(t, []format.ColumnUses{{Column: 1, Uses: []format.Use{{Ticker: 1, List: 0}}}}, ix.Missing)
	none := []byte{0, 0, 0, 0}
	_, err = format.DecodeIndex(none, 0, tickers, s)
	require.NoError(t, err)

	for what, b := range map[string][]byte{
		"nothing":                 {},
		"left over":               append(slices.Clone(valid), 0),
		"not the shortest form":   {0x80, 0, 0, 0, 0},
		"cut in a number":         {0x80},
		"a number of ten bytes":   {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0, 0},
		"empty break list":        {1, 0, 0, 0, 0},
		"empty missing list":      {0, 1, 0, 0, 0},
		"equal break lists":       {2, 1, 0, 1, 0, 0, 2, 0, 0, 0, 1, 0},
		"equal missing lists":     {0, 2, 1, 2, 1, 1, 2, 1, 0, 1, 1, 2, 0, 0, 0, 1},
		"break list unused":       {1, 1, 0, 0, 0, 0},
		"missing list unused":     {0, 1, 1, 2, 1, 0, 0},
		"unknown ticker":          {1, 1, 0, 0, 1, 2, 0, 0},
		"unknown list":            {1, 1, 0, 0, 1, 0, 1, 0},
		"lists not in order":      {2, 1, 0, 1, 1, 0, 2, 0, 1, 0, 0, 0},
		"break behind the rows":   {1, 1, 4, 0, 1, 1, 0, 0},
		"missing behind the rows": {0, 1, 1, 4, 1, 0, 1, 1, 1, 1, 0},
		"unknown column":          {0, 1, 1, 2, 1, 0, 1, 3, 1, 1, 0},
		"int64 column":            {0, 1, 1, 2, 1, 0, 1, 0, 1, 1, 0},
		"column without uses":     {0, 0, 0, 1, 1, 0, 0, 0},
		"row beyond all":          slices.Concat([]byte{1, 2}, craft.Uvarints(1<<62, 1<<62), []byte{0, 1, 0, 0, 0}),
	} {
		t.Run(what, func(t *testing.T) {
			refused(t, format.SectionInvalid, func() error { _, err := format.DecodeIndex(b, 8192, tickers, s); return err })
		})
	}
}

// TestIndexBuilder gives a panel's lists in any order of tickers, columns and sets: the bytes are the same.
func TestIndexBuilder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := craft.FromPanel(oracle.DrawPanel(t))
		f := craft.Split(c.Build())
		b := format.NewIndexBuilder(len(c.Schema.Breaks))
		rank := rapid.Permutation(seq(len(c.Tickers))).Draw(t, "order of tickers") // call i gives ticker rank[i]
		var calls []func()
		for i, ticker := range rank {
			tk := &c.Tickers[ticker]
			for set := range c.Schema.Breaks {
				calls = append(calls, func() { b.AddBreaks(set, i, tk.Breaks[set]) })
			}
			for column := range c.Schema.Columns() {
				var runs []format.Run
				for _, r := range craft.Runs(tk, column) {
					runs = append(runs, format.Run{From: r[0], To: r[1]})
				}
				calls = append(calls, func() { b.AddMissing(column, i, runs) })
			}
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order of calls"), 0))
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		for _, call := range calls {
			call()
		}
		require.Equal(t, f.Section("WIDX").Bytes, format.AppendIndex(nil, b.Build(rank)))
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestLayout compares with the pseudo-code of section 6, one line for each of its lines.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		align := int64(1) << rapid.IntRange(6, 16).Draw(t, "align")
		counts := func(least int64, label string) []int64 {
			return rapid.SliceOfN(rapid.Int64Range(least, 100_000), 0, 5).Draw(t, label)
		}
		entries, rows, rowBytes, lengths := counts(1, "entries"), counts(0, "rows"), counts(1, "row bytes"), counts(1, "lengths")
		up := func(x, a int64) int64 { return (x + a - 1) / a * a }
		var calendars, sections []int64
		blocks := make([]int64, len(rows)*len(rowBytes))
		live := []format.Run{{From: 0, To: 512}, {From: 4096, To: 4608}}
		p := up(8192, align)
		for c := range entries {
			p = up(p, align)
			calendars = append(calendars, p)
			live = append(live, format.Run{From: p, To: p + 8*entries[c]})
			p += 8 * entries[c]
		}
		for g := range rowBytes {
			for i := range rows {
				if rows[i] > 0 {
					p = up(p, align)
					blocks[i*len(rowBytes)+g] = p
					live = append(live, format.Run{From: p, To: p + rows[i]*rowBytes[g]})
					p += rows[i] * rowBytes[g]
				}
			}
		}
		if len(live) == 2 {
			p = 8192 // nothing to align
		}
		for _, n := range lengths {
			p = up(p, 8)
			sections = append(sections, p)
			live = append(live, format.Run{From: p, To: p + n})
			p += n
		}
		catalog := up(p, 8)
		live = append(live, format.Run{From: catalog, To: catalog + 8 + 40*int64(len(lengths))})

		l, err := format.PlanData(align, entries, rows, rowBytes)
		require.NoError(t, err)
		require.NoError(t, l.PlanSections(lengths))
		require.Equal(t, fmt.Sprint(calendars, blocks, sections), fmt.Sprint(l.Calendars, l.Blocks, l.Sections))
		require.Equal(t, catalog, l.Catalog)
		require.Equal(t, catalog+8+40*int64(len(lengths)), l.End)

		all := append(live, l.Padding...)
		slices.SortFunc(all, func(a, b format.Run) int { return cmp.Compare(a.From, b.From) })
		end := int64(0)
		for _, r := range all {
			require.Equal(t, end, r.From, "every byte is live or padding, and none both")
			end = r.To
		}
		require.Equal(t, l.End, end)
	})
	for _, c := range [][3][]int64{
		{{1 << 60}, nil, nil}, {{1 << 59, 1 << 59}, nil, nil}, {nil, {1 << 62}, {4}}, {nil, {1 << 40, 1 << 40}, {1 << 23}},
	} {
		_, err := format.PlanData(64, c[0], c[1], c[2])
		require.Error(t, err, "%v is beyond 2^63", c)
	}
	l, err := format.PlanData(64, nil, []int64{1<<63 - 1 - 16384}, []int64{1})
	require.NoError(t, err)
	require.Error(t, l.PlanSections([]int64{8192}))
}

func TestMissingCells(t *testing.T) {
	require.True(t, format.IsMissing(format.Missing()))
	require.EqualValues(t, 0x7fc00000, math.Float32bits(format.Missing()))
	rapid.Check(t, func(t *rapid.T) {
		p := oracle.DrawPanel(t)
		for i := range p.Tickers {
			ticker := &p.Tickers[i]
			column := 0
			for _, g := range p.Groups {
				width := len(g.Columns)
				if !g.LabelEnd {
					var cells []float32
					odd := -1
					for r := range ticker.Times {
						for c := range width {
							v := ticker.Cells[column+c][r]
							if ticker.IsMissing(column+c, int64(r)) && math.Float32bits(v) != oracle.Missing && odd < 0 {
								odd = len(cells)
							}
							cells = append(cells, v)
						}
					}
					s := format.NewMissingScanner(width)
					s.Scan(cells) // of another block
					s.Reset()
					got := -1
					for at := 0; at < len(cells); {
						n := rapid.IntRange(1, len(cells)-at).Draw(t, "piece")
						if k := s.Scan(cells[at : at+n]); k >= 0 && got < 0 {
							got = at + k
						}
						at += n
					}
					require.Equal(t, odd, got)
					for c := range width {
						var runs [][2]int64
						for _, r := range s.Runs(c) {
							runs = append(runs, [2]int64{r.From, r.To})
						}
						require.Equal(t, craft.Runs(ticker, column+c), runs)
					}
				}
				column += width
			}
		}
	})
}

// TestDigest spells section 8 out.
func TestDigest(t *testing.T) {
	u64 := func(v ...uint64) (b []byte) {
		for _, n := range v {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	d := format.NewDigest([]byte("schema"), 2)
	d.Ticker("A", 3, 77, [][]byte{u64(1, 2), nil}, [][]int64{{1, 2}, nil})
	d.Ticker("é", 0, xxhash.Sum64(nil), [][]byte{nil, nil}, [][]int64{nil, nil})
	want := sha256.Sum256(slices.Concat(
		[]byte("wstore-digest-1\n"), u64(6), []byte("schema"), u64(2),
		u64(1), []byte("A"), u64(3, 77, 1, 2, 2, 1, 2, 0),
		u64(2), []byte("é"), u64(0, 0xef46db3751d8e999, 0, 0),
	))
	require.Equal(t, want, d.Sum())

	// Categories and attributes come last; without any the digest is the same.
	d, other := format.NewDigest(nil, 0), format.NewDigest(nil, 0)
	d.Labels(nil, nil)
	require.Equal(t, other.Sum(), d.Sum())
	d.Labels([]format.Dictionary{{Column: 7, Categories: []string{"é"}}}, []*format.Attribute{format.NewNumber("n", []float64{1})})
	want = sha256.Sum256(slices.Concat(
		[]byte("wstore-digest-1\n"), u64(0, 0),
		[]byte("CATS"), u64(18), []byte{1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, []byte("é"),
		[]byte("STAT"), u64(16), []byte{1, 0, 0, 0, 1, 0, 'n', 2, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
	))
	require.Equal(t, want, d.Sum())
}

func TestErrors(t *testing.T) {
	e := &format.CorruptError{Section: "WIDX", Offset: 9000, Code: format.SectionInvalid, Detail: "list 3 is empty"}
	wrapped := fmt.Errorf("opening: %w", e)
	require.ErrorIs(t, wrapped, format.ErrCorrupt)
	require.ErrorIs(t, wrapped, format.SectionInvalid)
	require.NotErrorIs(t, wrapped, format.LayoutInvalid)
	require.NotErrorIs(t, wrapped, format.ErrUnsupported)
	require.EqualError(t, format.WithPath(e, "a.wst"), "a.wst: a section breaks a rule (WIDX, byte 9000): list 3 is empty")
	require.Empty(t, e.Path, "the original is kept")
	var c *format.CorruptError
	require.ErrorAs(t, format.WithPath(format.WithPath(e, "a.wst"), "b.wst"), &c)
	require.Equal(t, "a.wst", c.Path)

	u := &format.UnsupportedError{Feature: "incompat bit 0 (open)"}
	require.ErrorIs(t, u, format.ErrUnsupported)
	require.ErrorIs(t, u, format.Unsupported)
	require.NotErrorIs(t, u, format.ErrCorrupt)
	require.ErrorContains(t, format.WithPath(u, "a.wst"), "a.wst: the file needs incompat bit 0 (open)")
	other := errors.New("other")
	require.Equal(t, other, format.WithPath(other, "a.wst"))
	require.NoError(t, format.WithPath(nil, "a.wst"))

	require.Len(t, format.Codes(), 17)
	for _, c := range format.Codes() {
		require.NotEmpty(t, c.Error(), c)
	}
}
