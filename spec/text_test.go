package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// table returns the rows of a table of the text, without its head.
func table(t *testing.T, name string) [][]string {
	_, rest, found := strings.Cut(Text, "<!-- table: "+name+" -->\n")
	require.True(t, found, "SPEC.md has no table %q", name)
	var rows [][]string
	for i, line := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i < 2 {
			continue
		}
		var row []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	require.NotEmpty(t, rows)
	return rows
}

// code strips the marks of code.
func code(cell string) string { return strings.Trim(cell, "`") }

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// fieldTable holds a table of bytes to an encoding: the fields tile it, and each of them has its value at its offset.
func fieldTable(t *testing.T, name string, encoded []byte, values map[string][]byte) {
	at := 0
	var seen []string
	for _, row := range table(t, name) {
		offset, size, kind, field := atoi(t, row[0]), atoi(t, row[1]), row[2], row[3]
		require.Equal(t, at, offset, "%s: offset of %s", name, field)
		if n := map[string]int{"u32": 4, "u64": 8}[kind]; n > 0 {
			require.Equal(t, n, size, "%s: size of %s", name, field)
		}
		want, ok := values[field]
		require.True(t, ok, "%s: field %s is new; extend this test", name, field)
		require.Equal(t, want, encoded[offset:offset+size], "%s: %s", name, field)
		seen = append(seen, field)
		at += size
	}
	require.Len(t, encoded, at, "%s: the size of all fields", name)
	require.ElementsMatch(t, slices.Collect(maps.Keys(values)), seen)
}

func u32(v uint32) []byte { return le.AppendUint32(nil, v) }
func u64(v uint64) []byte { return le.AppendUint64(nil, v) }

func TestSlotTable(t *testing.T) {
	s := format.Slot{
		Version: 0x01020304, AlignLog2: 12, Compat: 0x11 << 56, ROCompat: 0x22 << 40, Incompat: 0x33 << 32,
		Commit: 4, End: 0x5555, CatalogOffset: 0x6660, CatalogLength: 7777, CatalogChecksum: 0x8888,
	}
	b := format.AppendSlot(nil, s)
	fieldTable(t, "slot", b, map[string][]byte{
		"magic": []byte(format.Magic), "version": u32(s.Version), "align_log2": u32(s.AlignLog2),
		"compat": u64(s.Compat), "ro_compat": u64(s.ROCompat), "incompat": u64(s.Incompat), "commit": u64(4), "end": u64(0x5555),
		"catalog_offset": u64(0x6660), "catalog_length": u64(7777), "catalog_checksum": u64(0x8888),
		"reserved": make([]byte, 424), "checksum": u64(xxhash.Sum64(b[:504])),
	})
	rules := table(t, "slot")
	require.Equal(t, format.Magic, magic(t, rules[0][4]))
	require.Equal(t, fmt.Sprintf("%d to %d; the alignment *A* is 2^align_log2", format.MinAlignLog2, format.MaxAlignLog2), rules[2][4])
	require.True(t, strings.HasPrefix(rules[1][4], strconv.Itoa(format.Version)+";"))
}

// magic reads bytes in hexadecimal.
func magic(t *testing.T, cell string) string {
	var b []byte
	for _, f := range strings.Fields(code(cell)) {
		v, err := strconv.ParseUint(f, 16, 8)
		require.NoError(t, err)
		b = append(b, byte(v))
	}
	return string(b)
}

func TestCatalogTables(t *testing.T) {
	s := format.Section{Tag: "ABCD", Flags: 0x01020304, Key: 5, Offset: 6, Length: 7, Checksum: 8}
	b := format.AppendCatalog(nil, []format.Section{s})
	require.Equal(t, format.CatalogHead+format.CatalogEntry, len(b))
	fieldTable(t, "catalog head", b[:format.CatalogHead], map[string][]byte{"count": u32(1), "reserved": u32(0)})
	fieldTable(t, "catalog entry", b[format.CatalogHead:], map[string][]byte{
		"tag": []byte("ABCD"), "flags": u32(s.Flags), "key": u64(5), "offset": u64(6), "length": u64(7), "checksum": u64(8),
	})
}

func TestSectionTable(t *testing.T) {
	var tags []string
	for _, row := range table(t, "sections") {
		tag := code(row[0])
		tags = append(tags, tag)
		require.Equal(t, uint32(atoi(t, row[1])), format.NewSection(tag, nil).Flags, tag)
		require.Contains(t, Text, "\n### "+row[2]+" `"+tag+"`", "the section that describes %s", tag)
	}
	require.True(t, slices.IsSorted(tags))
	require.Equal(t, []string{
		format.TagBlocks, format.TagCalendars, format.TagCategories, format.TagDigest, format.TagProvenance, format.TagSchema,
		format.TagAttributes, format.TagTickers, format.TagIndex,
	}, tags)
	require.Equal(t, 1, format.FlagRequired)
	require.Equal(t, 2, format.FlagSafeToCopy)
}

func TestErrorTable(t *testing.T) {
	var codes []format.Code
	for _, row := range table(t, "errors") {
		c := format.Code(code(row[0]))
		require.NotEmpty(t, c.Error(), "no meaning of %s", string(c))
		require.Contains(t, []string{"opening", "verifying", "opening, verifying"}, row[1])
		codes = append(codes, c)
	}
	require.Equal(t, format.Codes(), codes)

	// When each is found is what the vectors show.
	stages := map[string]map[string]bool{}
	for _, v := range readManifest(t) {
		if v.Code != nil {
			if stages[*v.Code] == nil {
				stages[*v.Code] = map[string]bool{}
			}
			stages[*v.Code][*v.Stage] = true
		}
	}
	for _, row := range table(t, "errors") {
		found := stages[code(row[0])]
		require.Equal(t, strings.Contains(row[1], "opening"), found["open"], row[0])
		require.Equal(t, strings.Contains(row[1], "verifying"), found["verify"], row[0])
	}
}

func readManifest(t *testing.T) []entry {
	b, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	require.NoError(t, err)
	var m struct {
		Schema  int
		Vectors []entry
	}
	require.NoError(t, json.Unmarshal(b, &m))
	require.Equal(t, 1, m.Schema)
	return m.Vectors
}

func TestLimitTable(t *testing.T) {
	want := map[string]string{
		"size of a file": "2^63 − 1",
		"alignment":      fmt.Sprintf("%d to %d", 1<<format.MinAlignLog2, 1<<format.MaxAlignLog2),
		"groups":         fmt.Sprintf("1 to %d", format.MaxGroups),
		"columns in all": fmt.Sprintf("1 to %d", format.MaxColumns),
		"break sets":     fmt.Sprintf("0 to %d", format.MaxBreakSets),
		"tickers":        fmt.Sprintf("0 to %d", format.MaxTickers),
		"bytes of a ticker, group, column, break set or attribute name": fmt.Sprintf("1 to %d", format.MaxName),
		"categories of a column": fmt.Sprintf("0 to %d", format.MaxTexts),
		"attributes":             fmt.Sprintf("0 to %d", format.MaxAttributes),
		"texts of an attribute":  fmt.Sprintf("0 to %d", format.MaxTexts),
		"bytes of a category or of an attribute's text": fmt.Sprintf("1 to %d", format.MaxText),
		"chunk":                           strconv.Itoa(format.ChunkSize),
		"sections in a catalog":           fmt.Sprintf("6 to %d", format.MaxSections),
		"bytes of a uvarint":              fmt.Sprintf("1 to %d", format.MaxUvarint),
		"lookback, stride, target length": fmt.Sprintf("1 to %d", format.MaxSpan),
		"horizons of a query":             fmt.Sprintf("1 to %d", format.MaxHorizons),
	}
	got := map[string]string{}
	for _, row := range table(t, "limits") {
		got[row[0]] = row[1]
	}
	require.Equal(t, want, got)
	require.Contains(t, Text, fmt.Sprintf("chunks(n) = ceil(n / %d)", format.ChunkSize))
	for n, chunks := range map[int64]int64{0: 0, 1: 1, format.ChunkSize: 1, format.ChunkSize + 1: 2, math.MaxInt64: 1 << 47} {
		require.Equal(t, chunks, format.Chunks(n))
	}
}

func TestFeatureTable(t *testing.T) {
	rows := table(t, "features")
	require.Len(t, rows, 1)
	require.Equal(t, []string{"incompat", "0", "open"}, rows[0][:3])
	require.Equal(t, 1, format.IncompatOpen)
	require.Zero(t, format.KnownIncompat, "an incompat bit is implemented: say so in sections 14 and 15")
}

// TestQueryTable holds the table of query parameters to the fields of reader.Query and its defaults to what a query gets.
func TestQueryTable(t *testing.T) {
	var names []string
	defaults := map[string]string{}
	for _, row := range table(t, "query") {
		for _, name := range strings.Split(row[0], ", ") {
			names = append(names, name)
			defaults[name] = row[2]
		}
	}
	require.Equal(t, []string{
		"inputs", "targets", "optional", "lookback", "horizons", "target_length", "stride", "at", "breaks", "tickers", "where", "from", "to",
	}, names)
	require.Equal(t, "the group `features`", defaults["inputs"])
	require.Equal(t, "the group `targets` if there is one, else none", defaults["targets"])
	require.Equal(t, "none", defaults["optional"])
	require.Equal(t, "—", defaults["lookback"])
	require.Equal(t, "all", defaults["breaks"])
	require.Equal(t, "all", defaults["tickers"])

	s, err := reader.OpenBytes(base().Build(), nil)
	require.NoError(t, err)
	w, err := s.Windows(reader.Query{Lookback: 1})
	require.NoError(t, err)
	q := w.Query()
	require.Equal(t, []string{"features"}, q.Inputs)
	require.Equal(t, []string{"targets"}, q.Targets)
	require.Equal(t, []int{atoi(t, defaults["horizons"])}, q.Horizons)
	require.Equal(t, atoi(t, defaults["target_length"]), q.TargetLength)
	require.Equal(t, atoi(t, defaults["stride"]), q.Stride)
	_, err = s.Windows(reader.Query{})
	require.ErrorIs(t, err, reader.ErrQuery, "the lookback has no default")

	v := one()
	s, err = reader.OpenBytes(v.build(), nil)
	require.NoError(t, err)
	w, err = s.Windows(reader.Query{Lookback: 1})
	require.NoError(t, err)
	require.Empty(t, w.Query().Targets)
	require.Empty(t, w.Query().Horizons)
}

// TestExamples answers the examples of section 11.3 with the oracle and with the reader.
func TestExamples(t *testing.T) {
	examples, err := oracle.Examples(Text)
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	p := oracle.ExamplePanel()
	s, err := reader.OpenBytes(craft.FromPanel(p).Build(), &reader.Options{Verify: true})
	require.NoError(t, err)
	for _, e := range examples {
		windows, err := oracle.Windows(p, e.Query)
		require.NoError(t, err, e.Line)
		var anchors []int64
		for _, w := range windows {
			anchors = append(anchors, w.Anchor)
		}
		require.Equal(t, e.Anchors, anchors, e.Line)
		agrees(t, s, p, e.Query)
	}
}

func TestWordsInTheText(t *testing.T) {
	require.Contains(t, Text, fmt.Sprintf("`%016x`", xxhash.Sum64(nil)))
	require.Equal(t, format.Magic, magic(t, regexp.MustCompile("(?m)^The magic bytes of a slot are `([0-9A-F ]+)`").FindStringSubmatch(Text)[1]))
	require.Contains(t, Text, fmt.Sprintf("the quiet NaN with the bits `%08x`", uint32(format.MissingBits)))
	require.Contains(t, Text, fmt.Sprintf("%016x missing", uint64(format.NoNumber)))
	require.Contains(t, Text, "−2^63 if there is none")
	require.Equal(t, int64(math.MinInt64), int64(format.NoTime))
	require.Equal(t, uint32(oracle.Missing), uint32(format.MissingBits))
}

// TestContents follows the links of the table of contents, and the numbers of the sections.
func TestContents(t *testing.T) {
	var anchors []string
	number := 0
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(Text, -1) {
		number++
		require.True(t, strings.HasPrefix(m[1], strconv.Itoa(number)+". "), m[1])
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
	}
	contents, _, _ := strings.Cut(Text, "\n## ")
	var links []string
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(contents, -1) {
		links = append(links, m[1])
	}
	require.Equal(t, anchors, links)
	for _, m := range regexp.MustCompile(`\]\(([A-Za-z][^)#:]*)\)`).FindAllStringSubmatch(Text, -1) {
		_, err := os.Stat(m[1])
		require.NoError(t, err, "the text links to it")
	}
	for _, m := range regexp.MustCompile(`[Ss]ections? ([0-9]+(?:\.[0-9]+)?)`).FindAllStringSubmatch(Text, -1) {
		require.Regexp(t, `(?m)^##+ `+regexp.QuoteMeta(m[1])+`[. ]`, Text, "section %s is referred to", m[1])
	}
}

// TestSlotFieldsAreIndependent decodes random valid slots: each field comes back.
func TestSlotFieldsAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := r.Int64N(100)
		s := format.Slot{
			Version: r.Uint32(), AlignLog2: 6 + r.Uint32N(11), Compat: r.Uint64(), ROCompat: r.Uint64(),
			CatalogOffset: 8192 + 8*r.Int64N(1<<20), CatalogLength: 8 + 40*n, CatalogChecksum: r.Uint64(),
		}
		s.End = s.CatalogOffset + s.CatalogLength
		head := append(format.AppendSlot(nil, s), make([]byte, format.DataStart-format.SlotSize)...)
		got, err := format.DecodeSlots(head, s.End)
		require.NoError(t, err)
		require.Equal(t, s, got.Newest)
		require.True(t, got.Unused)
		require.Nil(t, got.Damaged)
	}
}
