package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	codecs "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// testColumn is a column of a test's table. Its cells are nil, bool, int64, uint64,
// float32, float64, string or *big.Int, as its type has them.
type testColumn struct {
	name  string
	typ   arrow.DataType
	cells []any
	coded bool // as a dictionary, where the format has a choice
}

// writeArrow writes a table as a stream or file of Arrow.
func writeArrow(tb tester, columns []testColumn, stream bool, batch int, options ...ipc.Option) []byte {
	tb.Helper()
	mem := memory.DefaultAllocator
	var fields []arrow.Field
	for _, c := range columns {
		typ := c.typ
		if c.coded {
			typ = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: typ}
		}
		fields = append(fields, arrow.Field{Name: c.name, Type: typ, Nullable: true})
	}
	s := arrow.NewSchema(fields, nil)
	options = append([]ipc.Option{ipc.WithSchema(s), ipc.WithDictionaryDeltas(stream)}, options...)
	var b bytes.Buffer
	var write func(arrow.RecordBatch) error
	var end func() error
	if stream {
		w := ipc.NewWriter(&b, options...)
		write, end = w.Write, w.Close
	} else {
		w, err := ipc.NewFileWriter(&b, options...)
		require.NoError(tb, err)
		write, end = w.Write, w.Close
	}
	distinct := func(cells []any) (values []any, at map[string]int) {
		at = map[string]int{}
		for _, cell := range cells {
			if key := cellKey(cell); cell != nil && at[key] == 0 {
				values = append(values, cell)
				at[key] = len(values)
			}
		}
		return values, at
	}
	for from := 0; from < len(columns[0].cells); from += batch {
		to := min(from+batch, len(columns[0].cells))
		var arrays []arrow.Array
		for i, c := range columns {
			b := array.NewBuilder(mem, c.typ)
			if !c.coded {
				for _, cell := range c.cells[from:to] {
					appendArrow(tb, b, cell)
				}
				arrays = append(arrays, b.NewArray())
				continue
			}
			all := c.cells
			if stream { // the dictionary grows
				all = c.cells[:to]
			}
			values, at := distinct(all)
			for _, v := range values {
				appendArrow(tb, b, v)
			}
			codes := array.NewInt16Builder(mem)
			for _, cell := range c.cells[from:to] {
				if cell == nil {
					codes.AppendNull()
				} else {
					codes.Append(int16(at[cellKey(cell)] - 1))
				}
			}
			arrays = append(arrays, array.NewDictionaryArray(fields[i].Type, codes.NewArray(), b.NewArray()))
		}
		require.NoError(tb, write(array.NewRecordBatch(s, arrays, int64(to-from))))
	}
	require.NoError(tb, end())
	return b.Bytes()
}

// cellKey tells cells apart.
func cellKey(cell any) string {
	switch v := cell.(type) {
	case float64:
		return fmt.Sprintf("%016x", math.Float64bits(v))
	case float32:
		return fmt.Sprintf("%08x", math.Float32bits(v))
	}
	return fmt.Sprint(cell)
}

func appendArrow(tb tester, b array.Builder, cell any) {
	if cell == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(cell.(bool))
	case *array.Int8Builder:
		b.Append(int8(cell.(int64)))
	case *array.Int16Builder:
		b.Append(int16(cell.(int64)))
	case *array.Int32Builder:
		b.Append(int32(cell.(int64)))
	case *array.Int64Builder:
		b.Append(cell.(int64))
	case *array.Uint8Builder:
		b.Append(uint8(cell.(uint64)))
	case *array.Uint16Builder:
		b.Append(uint16(cell.(uint64)))
	case *array.Uint32Builder:
		b.Append(uint32(cell.(uint64)))
	case *array.Uint64Builder:
		b.Append(cell.(uint64))
	case *array.Float16Builder:
		b.Append(toHalf(cell.(float32)))
	case *array.Float32Builder:
		b.Append(cell.(float32))
	case *array.Float64Builder:
		b.Append(cell.(float64))
	case *array.StringBuilder:
		b.Append(cell.(string))
	case *array.LargeStringBuilder:
		b.Append(cell.(string))
	case *array.StringViewBuilder:
		b.Append(cell.(string))
	case *array.BinaryBuilder:
		b.Append([]byte(cell.(string)))
	case *array.BinaryViewBuilder:
		b.Append([]byte(cell.(string)))
	case *array.Decimal32Builder:
		require.NoError(tb, b.AppendValueFromString(decimalText(cell.(*big.Int), b.Type().(arrow.DecimalType).GetScale())))
	case *array.Decimal64Builder:
		require.NoError(tb, b.AppendValueFromString(decimalText(cell.(*big.Int), b.Type().(arrow.DecimalType).GetScale())))
	case *array.Decimal128Builder:
		w := words(cell.(*big.Int), 2)
		b.Append(decimal128.New(int64(w[0]), w[1]))
	case *array.Decimal256Builder:
		w := words(cell.(*big.Int), 4)
		b.Append(decimal256.New(w[0], w[1], w[2], w[3]))
	case *array.Date32Builder:
		b.Append(arrow.Date32(cell.(int64)))
	case *array.Date64Builder:
		b.Append(arrow.Date64(cell.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(cell.(int64)))
	default:
		tb.Fatalf("no such column: %T", b)
	}
}

func decimalText(v *big.Int, scale int32) string {
	return new(big.Rat).SetFrac(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(int(scale))
}

// writeParquet writes a table as Parquet. Columns without a missing cell are
// required ones.
func writeParquet(tb tester, columns []testColumn, group int, options ...parquet.WriterProperty) []byte {
	tb.Helper()
	var nodes schema.FieldList
	optional := make([]bool, len(columns))
	for i, c := range columns {
		rep := parquet.Repetitions.Required
		for _, cell := range c.cells {
			if optional[i] = optional[i] || cell == nil; optional[i] {
				rep = parquet.Repetitions.Optional
			}
		}
		node, err := parquetNode(c, rep)
		require.NoError(tb, err)
		nodes = append(nodes, node)
		options = append(options, parquet.WithDictionaryFor(c.name, c.coded))
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	require.NoError(tb, err)
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root, file.WithWriterProps(parquet.NewWriterProperties(options...)))
	for from := 0; from < len(columns[0].cells); from += group {
		rows, err := w.AppendRowGroupChecked()
		require.NoError(tb, err)
		for i, c := range columns {
			cw, err := rows.NextColumn()
			require.NoError(tb, err)
			appendParquet(tb, cw, c, c.cells[from:min(from+group, len(c.cells))], optional[i])
			require.NoError(tb, cw.Close())
		}
		require.NoError(tb, rows.Close())
	}
	require.NoError(tb, w.Close())
	return b.Bytes()
}

func parquetNode(c testColumn, rep parquet.Repetition) (schema.Node, error) {
	logical := func(l schema.LogicalType, p parquet.Type, width int) (schema.Node, error) {
		return schema.NewPrimitiveNodeLogical(c.name, rep, l, p, width, -1)
	}
	plain := func(p parquet.Type) (schema.Node, error) { return schema.NewPrimitiveNode(c.name, rep, p, -1, -1) }
	bits := 0
	if w, ok := c.typ.(arrow.FixedWidthDataType); ok {
		bits = w.BitWidth()
	}
	switch typ := c.typ.(type) {
	case *arrow.BooleanType:
		return plain(parquet.Types.Boolean)
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type:
		return logical(schema.NewIntLogicalType(int8(bits), true), parquet.Types.Int32, -1)
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type:
		return logical(schema.NewIntLogicalType(int8(bits), false), parquet.Types.Int32, -1)
	case *arrow.Uint64Type:
		return logical(schema.NewIntLogicalType(64, false), parquet.Types.Int64, -1)
	case *arrow.Int64Type:
		return plain(parquet.Types.Int64)
	case *arrow.Float16Type:
		return logical(schema.Float16LogicalType{}, parquet.Types.FixedLenByteArray, 2)
	case *arrow.Float32Type:
		return plain(parquet.Types.Float)
	case *arrow.Float64Type:
		return plain(parquet.Types.Double)
	case *arrow.Decimal32Type:
		return logical(schema.NewDecimalLogicalType(typ.Precision, typ.Scale), parquet.Types.Int32, -1)
	case *arrow.Decimal64Type:
		return logical(schema.NewDecimalLogicalType(typ.Precision, typ.Scale), parquet.Types.Int64, -1)
	case *arrow.Decimal128Type:
		return logical(schema.NewDecimalLogicalType(typ.Precision, typ.Scale), parquet.Types.FixedLenByteArray, 16)
	case *arrow.Decimal256Type:
		return logical(schema.NewDecimalLogicalType(typ.Precision, typ.Scale), parquet.Types.ByteArray, -1)
	case *arrow.Date32Type:
		return logical(schema.DateLogicalType{}, parquet.Types.Int32, -1)
	case *arrow.TimestampType:
		if typ.Unit == arrow.Second { // which Parquet lacks: the deprecated kind
			return plain(parquet.Types.Int96)
		}
		unit := map[arrow.TimeUnit]schema.TimeUnitType{arrow.Millisecond: schema.TimeUnitMillis, arrow.Microsecond: schema.TimeUnitMicros, arrow.Nanosecond: schema.TimeUnitNanos}[typ.Unit]
		return logical(schema.NewTimestampLogicalType(typ.TimeZone != "", unit), parquet.Types.Int64, -1)
	case *arrow.BinaryType:
		return plain(parquet.Types.ByteArray)
	}
	return logical(schema.StringLogicalType{}, parquet.Types.ByteArray, -1)
}

func appendParquet(tb tester, cw file.ColumnChunkWriter, c testColumn, cells []any, optional bool) {
	var defs []int16
	var there []any
	for _, cell := range cells {
		d := int16(0)
		if cell != nil {
			d, there = 1, append(there, cell)
		}
		if optional {
			defs = append(defs, d)
		}
	}
	integer := func(cell any) int64 {
		switch v := cell.(type) {
		case uint64:
			return int64(v)
		case *big.Int:
			return v.Int64()
		}
		return cell.(int64)
	}
	var err error
	switch w := cw.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) bool { return v.(bool) }), defs, nil)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) int32 { return int32(integer(v)) }), defs, nil)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, integer), defs, nil)
	case *file.Int96ColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) (x parquet.Int96) {
			days, rest := floorDiv(v.(int64), 86400)
			binary.LittleEndian.PutUint64(x[:], uint64(rest)*1e9)
			binary.LittleEndian.PutUint32(x[8:], uint32(days+2440588))
			return x
		}), defs, nil)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) float32 { return v.(float32) }), defs, nil)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) float64 { return v.(float64) }), defs, nil)
	case *file.ByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) parquet.ByteArray {
			if n, ok := v.(*big.Int); ok {
				return twos(n, len(n.Bytes())+1)
			}
			return parquet.ByteArray(v.(string))
		}), defs, nil)
	case *file.FixedLenByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(convert(there, func(v any) parquet.FixedLenByteArray {
			if f, ok := v.(float32); ok {
				return toHalf(f).ToLEBytes()
			}
			return parquet.FixedLenByteArray(twos(v.(*big.Int), 16))
		}), defs, nil)
	default:
		tb.Fatalf("no such column: %T", cw)
	}
	require.NoError(tb, err)
}

// halfValue is the value of a float16.
func halfValue(bits uint16) float32 {
	exp, frac := int(bits>>10&31), float64(bits&1023)
	sign := 1 - 2*float64(bits>>15)
	switch exp {
	case 0:
		return float32(math.Copysign(math.Ldexp(frac, -24), sign))
	case 31:
		if frac > 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return float32(sign * math.Ldexp(1024+frac, exp-25))
}

// toHalf finds the float16 of a value that is one.
func toHalf(f float32) float16.Num {
	for bits := range uint16(0x7c01) {
		if v := halfValue(bits); math.Abs(float64(v)) == math.Abs(float64(f)) {
			if math.Signbit(float64(f)) {
				bits |= 0x8000
			}
			return float16.FromBits(bits)
		}
	}
	return float16.FromBits(0x7e00)
}

// twos is an integer of n bytes in two's complement, big-endian.
func twos(v *big.Int, n int) []byte {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(make([]byte, n))
}

// words is an integer of n words in two's complement, the highest first. The FromBigInt of package arrow takes the
// words of math/big, which have 32 bits on some machines, for words of 64.
func words(v *big.Int, n int) []uint64 {
	w, b := make([]uint64, n), twos(v, 8*n)
	for i := range w {
		w[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return w
}

func convert[T any](cells []any, to func(any) T) []T {
	out := make([]T, 0, len(cells))
	for _, c := range cells {
		out = append(out, to(c))
	}
	return out
}

// wantFloat is what a cell becomes, by way of math/big.
func wantFloat(c testColumn, cell any, st *ColumnStats) uint32 {
	var x *big.Rat
	switch v := cell.(type) {
	case nil:
		st.Missing++
		return nan
	case bool:
		x = new(big.Rat)
		if v {
			x.SetInt64(1)
		}
	case int64:
		x = new(big.Rat).SetInt64(v)
	case uint64:
		x = new(big.Rat).SetUint64(v)
	case float32:
		if v-v != 0 {
			st.Missing++
			st.NonFinite++
			return nan
		}
		return math.Float32bits(v)
	case float64:
		if v-v != 0 {
			st.Missing++
			st.NonFinite++
			return nan
		}
		if v == 0 {
			return math.Float32bits(float32(v)) // with its sign
		}
		x = new(big.Rat).SetFloat64(v)
	case *big.Int:
		scale := c.typ.(arrow.DecimalType).GetScale()
		x = new(big.Rat).SetFrac(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	}
	f, _ := x.Float32()
	if new(big.Rat).SetFloat64(float64(f)).Cmp(x) != 0 { // Float32's own opinion is wrong where it gives 0
		st.Inexact++
		d := new(big.Rat).Sub(new(big.Rat).SetFloat64(float64(f)), x)
		rel, _ := d.Quo(d.Abs(d), x.Abs(x)).Float64()
		st.MaxRelError = max(st.MaxRelError, rel)
	}
	if x.Sign() == 0 {
		f = 0
	}
	return math.Float32bits(f)
}

var decimals = map[arrow.Type]int{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 45}

// drawCell draws a cell of a type, often a special one.
func drawCell(t *rapid.T, typ arrow.DataType) any {
	special := rapid.IntRange(0, 3).Draw(t, "special") == 0
	ints := func(bits int) int64 {
		if special {
			return rapid.SampledFrom([]int64{0, -1, 1, math.MaxInt64 >> (64 - bits), math.MinInt64 >> (64 - bits), 16777217 & (1<<(bits-1) - 1)}).Draw(t, "int")
		}
		return rapid.Int64().Draw(t, "int") >> (64 - bits) >> rapid.IntRange(0, bits-1).Draw(t, "shift")
	}
	switch typ := typ.(type) {
	case *arrow.BooleanType:
		return rapid.Bool().Draw(t, "bool")
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		return ints(typ.(arrow.FixedWidthDataType).BitWidth())
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		bits := typ.(arrow.FixedWidthDataType).BitWidth()
		return uint64(ints(bits)) & (1<<(bits-1)<<1 - 1)
	case *arrow.Float16Type:
		return halfValue(rapid.Uint16().Draw(t, "half"))
	case *arrow.Float32Type:
		return math.Float32frombits(rapid.Uint32().Draw(t, "float"))
	case *arrow.Float64Type:
		if special {
			near := float64(math.Float32frombits(rapid.Uint32Range(0, 0x7f7ffffe).Draw(t, "near")))
			next := float64(math.Nextafter32(float32(near), math.MaxFloat32))
			return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324, -1e-46, near, (near + next) / 2,
				math.Nextafter((near+next)/2, 0), math.Nextafter((near+next)/2, 1e300), math.MaxFloat32, -math.MaxFloat32}).Draw(t, "float")
		}
		return rapid.Float64Range(-1e30, 1e30).Draw(t, "float")
	case arrow.DecimalType:
		digits := rapid.StringMatching(`-?[0-9]{1,`+strconv.Itoa(decimals[typ.ID()])+`}`).Draw(t, "decimal")
		v, _ := new(big.Int).SetString(digits, 10)
		return v
	case *arrow.Date32Type:
		return rapid.Int64Range(-106750, 106750).Draw(t, "day")
	case *arrow.TimestampType:
		const span = 9e18
		unit := int64(typ.Unit.Multiplier())
		return rapid.Int64Range(-span/unit, span/unit).Draw(t, "time")
	}
	return rapid.OneOf(rapid.StringMatching(`[A-Z]{1,5}`), rapid.SampledFrom([]string{"", "NA", "ÄÖ", "a text that is longer than a view", "1e5"})).Draw(t, "text")
}

var testTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Float64,
	&arrow.Decimal32Type{Precision: 9, Scale: 4}, &arrow.Decimal64Type{Precision: 18, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 20}, &arrow.Decimal256Type{Precision: 45, Scale: 17},
}

var testTimes = []arrow.DataType{
	arrow.FixedWidthTypes.Date32, &arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond},
	&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "America/New_York"},
}

var testTexts = []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.BinaryTypes.Binary}

// unitOfType is a type of time's unit in nanoseconds.
func unitOfType(typ arrow.DataType) int64 {
	if ts, ok := typ.(*arrow.TimestampType); ok {
		return int64(ts.Unit.Multiplier())
	}
	return 86400e9
}

// Tables of all types come out of all formats as math/big has them, whatever the
// batches, pages, slices and goroutines.
func TestColumnarProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "rows")
		column := func(name string, types []arrow.DataType, missing bool) testColumn {
			c := testColumn{name: name, typ: rapid.SampledFrom(types).Draw(t, "type"), coded: rapid.IntRange(0, 2).Draw(t, "coded") == 0}
			holes := missing && rapid.Bool().Draw(t, "holes")
			pool := make([]any, rapid.IntRange(1, 8).Draw(t, "pool"))
			for i := range pool {
				pool[i] = drawCell(t, c.typ)
			}
			for i := range n {
				cell := pool[(i*i+i)%len(pool)]
				if holes && i%7 == 3 {
					cell = nil
				}
				c.cells = append(c.cells, cell)
			}
			return c
		}
		columns := []testColumn{column("when", testTimes, false), column("until", testTimes, true), column("ticker", testTexts, false), column("note", testTexts, true)}
		for i, cell := range columns[2].cells {
			if cell == "" {
				columns[2].cells[i] = "T"
			}
		}
		p := Plan{Time: 0, Ticker: 2, Times: []int{1}, Texts: []int{3}}
		for i := range rapid.IntRange(1, 6).Draw(t, "width") {
			columns = append(columns, column(fmt.Sprintf("x%d", i), testTypes, true))
			p.Floats = append(p.Floats, 4+i)
		}
		name := filepath.Join(dir, "table")
		require.NoError(t, os.WriteFile(name, drawFile(t, columns), 0o600))

		want := make([]row, n)
		stats := make([]ColumnStats, len(p.Floats))
		for i := range want {
			text, _ := columns[3].cells[i].(string)
			w := row{Line: int64(i + 1), Ticker: columns[2].cells[i].(string), Time: columns[0].cells[i].(int64) * unitOfType(columns[0].typ), Stamps: []int64{noStamp}, Texts: []string{text}}
			if v, ok := columns[1].cells[i].(int64); ok {
				w.Stamps[0] = v * unitOfType(columns[1].typ)
			}
			for k, c := range p.Floats {
				w.Cells = append(w.Cells, wantFloat(columns[c], columns[c].cells[i], &stats[k]))
			}
			want[i] = w
		}
		for _, jobs := range []int{1, 4} {
			s, err := NewSurvey(context.Background(), []Source{{Path: name}}, Options{Jobs: jobs})
			require.NoError(t, err)
			require.Equal(t, Time, s.Columns[0].Kind)
			s.chunk = rapid.SampledFrom([]int{1, 20_000}).Draw(t, "chunk")
			got, st, err := rows(context.Background(), s, p)
			require.NoError(t, err)
			require.Equal(t, want, got)
			for i, c := range st.Columns {
				require.InDelta(t, stats[i].MaxRelError, c.MaxRelError, 1e-15)
				c.MaxRelError = stats[i].MaxRelError
				require.Equal(t, stats[i], c)
			}
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, info.Size(), st.Bytes)
		}
	})
}

// drawFile writes a table in a format that it draws.
func drawFile(t *rapid.T, columns []testColumn) []byte {
	n := len(columns[0].cells)
	piece := rapid.IntRange(1, n).Draw(t, "piece")
	if rapid.Bool().Draw(t, "arrow") {
		stream := rapid.Bool().Draw(t, "stream")
		var options []ipc.Option
		switch rapid.IntRange(0, 2).Draw(t, "codec") {
		case 1:
			options = append(options, ipc.WithLZ4())
		case 2:
			options = append(options, ipc.WithZstd())
		}
		return writeArrow(t, columns, stream, piece, options...)
	}
	page := rapid.SampledFrom([]int64{64, 1 << 20}).Draw(t, "page")
	options := []parquet.WriterProperty{
		parquet.WithCompression(rapid.SampledFrom([]codecs.Compression{codecs.Codecs.Uncompressed, codecs.Codecs.Snappy, codecs.Codecs.Gzip, codecs.Codecs.Brotli, codecs.Codecs.Zstd, codecs.Codecs.Lz4Raw}).Draw(t, "codec")),
		parquet.WithDataPageVersion(rapid.SampledFrom([]parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2}).Draw(t, "version")),
		parquet.WithDataPageSize(page), parquet.WithBatchSize(rapid.Int64Range(1, 64).Draw(t, "batch")),
	}
	other := rapid.Bool().Draw(t, "encoding")
	for _, c := range columns {
		if !other || c.coded {
			continue
		}
		switch c.typ.(type) {
		case *arrow.Int8Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Uint64Type, *arrow.Date32Type:
			options = append(options, parquet.WithEncodingFor(c.name, parquet.Encodings.DeltaBinaryPacked))
		case *arrow.Float32Type, *arrow.Float64Type:
			options = append(options, parquet.WithEncodingFor(c.name, parquet.Encodings.ByteStreamSplit))
		case *arrow.BooleanType:
			if page > 64 { // the writer repeats the first page
				options = append(options, parquet.WithEncodingFor(c.name, parquet.Encodings.RLE))
			}
		case *arrow.StringType:
			options = append(options, parquet.WithEncodingFor(c.name, parquet.Encodings.DeltaByteArray))
		case *arrow.LargeStringType:
			options = append(options, parquet.WithEncodingFor(c.name, parquet.Encodings.DeltaLengthByteArray))
		}
	}
	return writeParquet(t, columns, piece, options...)
}

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// columnarSource writes a file into a folder of its own.
func columnarSource(tb testing.TB, name string, b []byte) Source {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	require.NoError(tb, os.WriteFile(path, b, 0o600))
	return Source{Path: path, Size: int64(len(b))}
}

func times(n int) testColumn {
	c := testColumn{name: "date", typ: &arrow.TimestampType{Unit: arrow.Millisecond}}
	for i := range n {
		c.cells = append(c.cells, int64(i)*86400e3)
	}
	return c
}

func numbers(name string, cells ...any) testColumn {
	return testColumn{name: name, typ: arrow.PrimitiveTypes.Float64, cells: cells}
}

func TestColumnarRefusesRows(t *testing.T) {
	late := times(3)
	late.cells[1] = nil
	far := testColumn{name: "date", typ: &arrow.TimestampType{Unit: arrow.Second}, cells: []any{int64(0), int64(1), int64(1) << 60}}
	for _, c := range []struct {
		columns []testColumn
		want    string
	}{
		{[]testColumn{times(3), numbers("x", 1.0, 1e39, nil)}, `row 2: column "x": "1000000000000000000000000000000000000000" is larger than any float32`},
		{[]testColumn{times(3), numbers("x", 1.0, 2.0, -1e300), numbers("y", 1.0, 1e39, 1e39)}, `row 2: column "y": "1000000000000000000000000000000000000000" is larger`},
		{[]testColumn{late, numbers("x", 1.0, 2.0, 3.0)}, `row 2: column "date": the time is missing; `},
		{[]testColumn{far, numbers("x", 1.0, 2.0, 3.0)}, `row 3: column "date": `},
		{[]testColumn{times(3), {name: "x", typ: arrow.BinaryTypes.String, cells: []any{"1", "2.5", "x1"}}}, `row 3: column "x": "x1" is not a number`},
	} {
		for _, jobs := range []int{1, 3} {
			src := columnarSource(t, "a.arrow", writeArrow(t, c.columns, false, 2))
			s, err := NewSurvey(t.Context(), []Source{src}, Options{Jobs: jobs})
			require.NoError(t, err)
			p := Plan{Ticker: -1, Time: 0}
			for i := 1; i < len(c.columns); i++ {
				p.Floats = append(p.Floats, i)
			}
			_, _, err = rows(t.Context(), s, p)
			require.ErrorContains(t, err, "a.arrow: "+c.want)
			var row *RowError
			require.ErrorAs(t, err, &row)
			require.True(t, row.Row)

			// Without the bad rows the others are there, and nothing of the bad ones is counted.
			s, err = NewSurvey(t.Context(), []Source{src}, Options{Jobs: jobs, SkipBad: true})
			require.NoError(t, err)
			got, st, err := rows(t.Context(), s, p)
			require.NoError(t, err)
			require.NotEmpty(t, got)
			require.EqualValues(t, 3, st.Rows+st.Skipped)
			require.Contains(t, st.FirstSkipped, c.want)
			for i, col := range st.Columns {
				missing := 0
				for _, r := range got {
					if r.Cells[i] == nan {
						missing++
					}
				}
				require.EqualValues(t, missing, col.Missing)
			}
		}
	}
}

func TestColumnarTimes(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	read := func(c testColumn) ([]row, error) {
		c.name = "date"
		s, err := NewSurvey(t.Context(), []Source{columnarSource(t, "a.arrow", writeArrow(t, []testColumn{c, numbers("x", 1.0)}, false, 1))}, Options{Location: zone})
		require.NoError(t, err)
		got, _, err := rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{1}})
		return got, err
	}
	wall := time.Date(2020, 7, 1, 9, 30, 0, 0, time.UTC)
	got, err := read(testColumn{typ: &arrow.TimestampType{Unit: arrow.Second}, cells: []any{wall.Unix()}})
	require.NoError(t, err)
	require.Equal(t, wall.Add(4*time.Hour).UnixNano(), got[0].Time)
	got, err = read(testColumn{typ: &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Asia/Tokyo"}, cells: []any{wall.Unix()}})
	require.NoError(t, err)
	require.Equal(t, wall.UnixNano(), got[0].Time)
	got, err = read(testColumn{typ: arrow.FixedWidthTypes.Date32, cells: []any{wall.Unix() / 86400}})
	require.NoError(t, err)
	require.Equal(t, time.Date(2020, 7, 1, 4, 0, 0, 0, time.UTC).UnixNano(), got[0].Time)
	_, err = read(testColumn{typ: &arrow.TimestampType{Unit: arrow.Second}, cells: []any{time.Date(2020, 3, 8, 2, 30, 0, 0, time.UTC).Unix()}})
	require.ErrorContains(t, err, `row 1: column "date": "2020-03-08T02:30:00" does not exist in America/New_York`)

	// Texts and integers are read as those of a CSV file.
	for _, c := range []testColumn{
		{typ: arrow.BinaryTypes.String, cells: []any{"2020-07-01 09:30"}},
		{typ: arrow.BinaryTypes.StringView, cells: []any{"07/13/2020 09:30"}},
		{typ: arrow.PrimitiveTypes.Int64, cells: []any{wall.Unix()}},
		{typ: arrow.PrimitiveTypes.Float64, cells: []any{float64(wall.UnixMilli())}},
	} {
		got, err := read(c)
		require.NoError(t, err)
		require.Len(t, got, 1)
	}
}

func TestSurveyZone(t *testing.T) {
	zoned := times(1)
	zoned.typ = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "America/New_York"}
	a := columnarSource(t, "a.arrow", writeArrow(t, []testColumn{zoned, numbers("x", 1.0)}, false, 1))
	b := columnarSource(t, "b.arrow", writeArrow(t, []testColumn{times(1), numbers("x", 1.0)}, false, 1))
	c := columnarSource(t, "c.csv", []byte("date,x\n2020-01-02,1\n"))
	for _, try := range []struct {
		sources []Source
		want    string
	}{{[]Source{a, a}, "America/New_York"}, {[]Source{a, b, a}, ""}, {[]Source{c, a}, ""}, {[]Source{b}, ""}} {
		s, err := NewSurvey(t.Context(), try.sources, Options{})
		require.NoError(t, err)
		require.Equal(t, try.want, s.Zone(0))
		require.Empty(t, s.Zone(1))
	}
}

// Sources of several formats agree if their columns are named alike, in whatever
// order, and whatever kinds of number they hold.
func TestColumnarMixed(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	ints := testColumn{name: "x", typ: arrow.PrimitiveTypes.Int64, cells: []any{int64(7), nil}}
	write("A.csv", []byte("date,x\n1970-01-01,1.5\n1970-01-02,\n"))
	write("B.parquet", writeParquet(t, []testColumn{numbers("x", 2.5, nil), times(2)}, 1))
	write("C.arrow", writeArrow(t, []testColumn{times(2), ints}, false, 5))
	write("D.pq", writeParquet(t, []testColumn{times(0), numbers("x")}, 1))
	write("E.txt", nil)
	srcs, skipped, err := Sources([]string{dir})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "E.txt")}, skipped)
	s, err := NewSurvey(t.Context(), srcs, Options{})
	require.NoError(t, err)
	require.Equal(t, []int{3}, s.Blank)
	require.Equal(t, []Kind{Time, Float}, []Kind{s.Columns[0].Kind, s.Columns[1].Kind})
	got, st, err := rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{1}, Texts: []int{1}})
	require.NoError(t, err)
	var text strings.Builder
	for _, r := range got {
		fmt.Fprintln(&text, r.Source, r.Line, r.Ticker, r.Time/86400e9, math.Float32frombits(r.Cells[0]), r.Texts)
	}
	require.Equal(t, "0 2 A 0 1.5 [1.5]\n0 3 A 1 NaN []\n1 1 B 0 2.5 [2.5]\n1 2 B 1 NaN []\n2 1 C 0 7 [7]\n2 2 C 1 NaN []\n", text.String())
	require.EqualValues(t, 3, st.Columns[0].Missing)
	require.Equal(t, srcs[1].Path+": row 2", s.Place(1, 2))
	require.Equal(t, srcs[0].Path+":3", s.Place(0, 3))

	_, err = NewSurvey(t.Context(), srcs[3:], Options{})
	require.ErrorContains(t, err, "D.pq: holds no row")
}

func TestColumnarColumns(t *testing.T) {
	lists := arrow.ListOf(arrow.PrimitiveTypes.Int64)
	s := arrow.NewSchema([]arrow.Field{
		{Name: "__index_level_0__", Type: arrow.FixedWidthTypes.Date32}, {Name: " x ", Type: arrow.PrimitiveTypes.Float32}, {Name: "l", Type: lists},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.StringView}, arrow.Field{Name: "b", Type: lists})},
		{Name: "", Type: arrow.PrimitiveTypes.Int8}, {Name: "d", Type: arrow.FixedWidthTypes.Duration_s}, {Name: "n", Type: arrow.Null},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	require.NoError(t, b.UnmarshalJSON([]byte(`{"__index_level_0__":"2020-01-02"," x ":2,"l":[1],"s":{"a":"a long text in a view","b":[1,2]},"":3,"d":"4s","n":null}`)))
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(s))
	require.NoError(t, w.Write(b.NewRecordBatch()))
	require.NoError(t, w.Close())
	survey, err := NewSurvey(t.Context(), []Source{columnarSource(t, "a.arrows", out.Bytes())}, Options{})
	require.NoError(t, err)
	for i := range survey.Columns {
		survey.Columns[i].Constant, survey.Columns[i].Same = false, false
	}
	require.Equal(t, []Column{
		{Name: "index", Kind: Time, Unnamed: true}, {Name: "x", Kind: Float}, {Name: "l", Kind: Other, Example: "lists"}, {Name: "s", Kind: Other, Example: "structs"},
		{Name: "column 5", Kind: Float, Unnamed: true}, {Name: "d", Kind: Other, Example: "durations"}, {Name: "n", Kind: Empty},
	}, survey.Columns)
	c, err := survey.TimeColumn()
	require.NoError(t, err)
	require.Equal(t, 0, c)
	got, _, err := rows(t.Context(), survey, Plan{Ticker: -1, Time: 0, Floats: []int{1, 4, 6}})
	require.NoError(t, err)
	require.Equal(t, []row{{Line: 1, Ticker: "a", Time: time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano(), Cells: append(bitsOf(2, 3), nan), Stamps: nil}}, got)
	_, _, err = rows(t.Context(), survey, Plan{Ticker: -1, Time: 0, Floats: []int{2}})
	require.ErrorContains(t, err, `column "l" holds lists, which are not read`)

	_, err = NewSurvey(t.Context(), []Source{columnarSource(t, "a.arrow", writeArrow(t, []testColumn{numbers("x", 1.0), numbers("x ", 1.0)}, false, 1))}, Options{})
	require.ErrorContains(t, err, `columns 1 and 2 are both named "x"`)
}
