package convert

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/internal/fsys"
)

// TestTable adds rows of some tickers in any order, with and without spilling, and reads them back: each ticker's by time,
// then by line, with their cells.
func TestTable(t *testing.T) {
	beside := filepath.Join(t.TempDir(), "out.wst")
	rapid.Check(t, func(t *rapid.T) {
		type row struct {
			time, line int64
			cell       float32 // its first; the others are 0
		}
		width := rapid.SampledFrom([]int{1, 7, 61, 300, 5000}).Draw(t, "width")
		p := &plan{cells: make([]cellOf, width)}
		p.read.Floats = make([]int, width)
		budget := rapid.SampledFrom([]int64{1 << 10, 100 << 10, 1 << 30}).Draw(t, "budget")
		table := newTable(p, nil, fsys.OS{}, beside, budget, 0)
		want := map[string][]row{}
		line := int64(0)
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			b := &ingest.Batch{Dict: []string{"A", "B", "C"}}
			most := max(20, 20_000/width)
			b.Rows = rapid.IntRange(1, most).Draw(t, "rows")
			step := rapid.Int64Range(-3, 3).Draw(t, "step")
			for i := range b.Rows {
				line++
				r := row{time: step * int64(i), line: line, cell: float32(line)}
				ticker := uint32(line*line) % uint32(len(b.Dict))
				b.Line, b.Tickers, b.Times = append(b.Line, r.line), append(b.Tickers, ticker), append(b.Times, r.time)
				b.Cells = append(append(b.Cells, r.cell), make([]float32, width-1)...)
				want[b.Dict[ticker]] = append(want[b.Dict[ticker]], r)
			}
			require.NoError(t, table.add(b))
		}
		cells := make([]float32, width)
		for _, s := range table.all() {
			var got []row
			require.NoError(t, table.each(s, func(r []byte) error {
				_, line := placeOf(r)
				f32.Decode(cells, table.shape.cellsOf(r))
				got = append(got, row{timeOf(r), line, cells[0]})
				return nil
			}))
			slices.SortFunc(want[s.name], func(a, b row) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.line, b.line)) })
			require.True(t, slices.Equal(want[s.name], got), fmt.Sprint(s.name, len(got)))
			delete(want, s.name)
		}
		require.Empty(t, want)
		require.Zero(t, table.used)
		require.NoError(t, table.close())
	})
}
