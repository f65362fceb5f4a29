package reader_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

func TestLabels(t *testing.T) {
	c := steps(5, 3)
	c.Tickers[0].Cells[1] = []float32{2, 0, format.Missing(), 1, 1}
	c.Tickers[1].Cells[1] = []float32{0, 0, 0}
	c.Categories = map[string][]string{"y": {"Energy", "IT", "é"}}
	c.Attributes = []oracle.Attribute{
		{Name: "beta", Numbers: []float64{1.5, math.NaN()}}, {Name: "sector", Texts: []string{"", "IT"}},
	}
	path := save(t, t.TempDir(), c.Build())
	for how, s := range everyWay(t, path) {
		got, err := s.Categories("y")
		require.NoError(t, err, how)
		require.Equal(t, []string{"Energy", "IT", "é"}, got)
		got, err = s.Categories("x")
		require.NoError(t, err)
		require.Nil(t, got)
		_, err = s.Categories("yy")
		require.ErrorIs(t, err, reader.ErrNotFound)
		require.ErrorContains(t, err, `no column "yy" in `+s.Path()+`; did you mean "y"`)

		require.Len(t, s.Attributes(), 2)
		beta, err := s.Attribute("beta")
		require.NoError(t, err)
		require.Equal(t, format.Number, beta.Kind)
		require.Equal(t, 1.5, beta.Number(0))
		require.True(t, math.IsNaN(beta.Number(1)))
		sector, err := s.Attribute("sector")
		require.NoError(t, err)
		text, ok := sector.Text(1)
		require.True(t, ok)
		require.Equal(t, "IT", text)
		_, ok = sector.Text(0)
		require.False(t, ok)
		_, err = s.Attribute("sectors")
		require.ErrorContains(t, err, `no attribute "sectors"`)
		require.ErrorContains(t, err, `did you mean "sector"?`)
		require.NoError(t, s.Close())
	}
}

// TestCodesOfManyChunks has a wrong code in each place of a block of several chunks, whose rows they cut.
func TestCodesOfManyChunks(t *testing.T) {
	const rows = 20_000 // of 12 bytes: the chunks end within rows
	schema := &format.Schema{Groups: []format.Group{{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}, {Name: "z"}}}}}
	tk := oracle.Ticker{Name: "A", Cells: make([][]float32, 3), Ends: make([][]int64, 3)}
	for r := range rows {
		tk.Times = append(tk.Times, int64(r))
		for k := range 3 {
			tk.Cells[k] = append(tk.Cells[k], float32(r%7))
		}
	}
	build := func(column string) []byte {
		c := &craft.Content{
			Schema: schema, Tickers: []oracle.Ticker{tk},
			Categories: map[string][]string{column: {"a", "b", "c", "d", "e", "f", "g", "h"}},
		}
		return c.Build()
	}
	for k, column := range []string{"x", "y", "z"} {
		for _, r := range []int{0, 1, 5461, 5462, 10922, 10923, rows - 1} {
			for _, to := range []float32{7, 8} {
				before := tk.Cells[k][r]
				tk.Cells[k][r] = to
				_, err := reader.OpenBytes(build(column), &reader.Options{Verify: true})
				if to < 8 {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, format.CellInvalid)
					require.ErrorContains(t, err, `8 in column "`+column+`" is not the number of one of its 8 categories`)
				}
				tk.Cells[k][r] = before
			}
		}
	}
}
