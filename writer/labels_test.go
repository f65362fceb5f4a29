package writer_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

func TestCategories(t *testing.T) {
	w, path := create(t, &writer.Options{Categories: map[string][]string{"y": {"Energy", "IT"}}})
	require.NoError(t, w.Begin("A"))
	none := format.Missing()
	require.NoError(t, w.Append([]int64{1, 2}, []writer.Cells{{F32: []float32{0.5, 1, -3, float32(math.Inf(1))}}}))
	for _, v := range []float32{2, -1, 0.5, float32(math.Copysign(0, -1)), 1 << 30} {
		err := w.Append([]int64{3, 4}, []writer.Cells{{F32: []float32{v, none, 0, v}}})
		require.ErrorContains(t, err, `ticker "A", row 3: `)
		require.ErrorContains(t, err, `in column "y" is not the number of one of its 2 categories`)
	}
	// What was refused left nothing behind.
	require.NoError(t, w.Append([]int64{3}, []writer.Cells{{F32: []float32{7, 0}}}))
	require.NoError(t, w.Finish(context.Background(), nil))

	s, err := reader.Open(path, &reader.Options{Verify: true})
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Rows(0))
	got, err := s.Categories("y")
	require.NoError(t, err)
	require.Equal(t, []string{"Energy", "IT"}, got)
	require.NoError(t, s.Close())
}

func TestBadLabels(t *testing.T) {
	schema := &format.Schema{Groups: []format.Group{
		{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}}},
		{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "m", Role: format.Mask}}},
		{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "e", Role: format.LabelEnd}}},
	}}
	texts, numbers := map[string]string{"A": "a"}, map[string]float64{"A": 1}
	for what, o := range map[string]writer.Options{
		`categories of column "z", which the schema does not have`: {Categories: map[string][]string{"z": nil}},
		`categories of column "features", which the schema`:        {Categories: map[string][]string{"features": nil}},
		`column "m" of role mask`:                                  {Categories: map[string][]string{"m": nil}},
		`column "e" of role label_end`:                             {Categories: map[string][]string{"e": nil}},
		`categories of column "x": text "A" is not behind "B"`:     {Categories: map[string][]string{"x": {"B", "A"}}},
		"an attribute has no name":                                 {Attributes: []writer.Attribute{{Texts: texts}}},
		`two attributes are named "a"`:                             {Attributes: []writer.Attribute{{Name: "a", Texts: texts}, {Name: "a", Texts: texts}}},
		`attribute "a" must have either`:                           {Attributes: []writer.Attribute{{Name: "a", Texts: texts, Numbers: numbers}}},
		`attribute "b" must have either`:                           {Attributes: []writer.Attribute{{Name: "b"}}},
		"65536 attributes":                                         {Attributes: make([]writer.Attribute, 65536)},
	} {
		dir := t.TempDir()
		_, err := writer.Create(filepath.Join(dir, "a.wst"), schema, &o)
		require.ErrorContains(t, err, what)
		require.Empty(t, files(t, dir))
	}
	// These are found when the tickers are known.
	for what, a := range map[string]writer.Attribute{
		`attribute "a": a value of ticker "B", which was not begun`: {Name: "a", Numbers: map[string]float64{"A": 1, "C": 2, "B": 3}},
		`attribute "a": text "\xff" is not valid UTF-8`:             {Name: "a", Texts: map[string]string{"A": "\xff"}},
	} {
		dir := t.TempDir()
		w, err := writer.Create(filepath.Join(dir, "a.wst"), schema, &writer.Options{Attributes: []writer.Attribute{a}})
		require.NoError(t, err)
		require.NoError(t, w.Begin("A"))
		require.ErrorContains(t, w.Finish(context.Background(), nil), what)
		require.Empty(t, files(t, dir))
	}
}
