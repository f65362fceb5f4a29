package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"golang.org/x/sync/errgroup"

	"github.com/wstore/wstore/format"
)

// writeParquet writes the rows as a Parquet file, a row group after the other, the columns of each on all cores.
func (p *panel) writeParquet(ctx context.Context, w io.Writer) error {
	// Parquet has no seconds.
	t, err := p.newTable("Parquet", max(p.s.Meta().Schema.Unit, format.Millisecond))
	if err != nil {
		return err
	}
	root, err := parquetSchema(t.schema)
	if err != nil {
		return err
	}
	meta := metadata.NewKeyValueMetadata()
	for i, key := range t.schema.Metadata().Keys() {
		if err := meta.Append(key, t.schema.Metadata().Values()[i]); err != nil {
			return err
		}
	}
	// Readers find here what Parquet's types don't say: the zone, and that tickers are a dictionary.
	var stored bytes.Buffer
	if err := ipc.NewWriter(&stored, ipc.WithSchema(t.schema)).Close(); err != nil {
		return err
	}
	if err := meta.Append("ARROW:schema", base64.StdEncoding.EncodeToString(stored.Bytes())); err != nil {
		return err
	}
	to := &sink{w: w}
	out, err := file.NewParquetWriterWithError(to, root, file.WithWriterProps(parquetProperties(t.schema)), file.WithWriteMetadata(meta))
	if err != nil {
		return cmp.Or(to.err, err)
	}
	e := parquetEncoder{out: out}
	for rec, err := range t.batches(ctx, 256<<10, 8<<20) {
		if err == nil {
			err = e.rowGroup(rec)
		}
		if err != nil {
			return cmp.Or(to.err, err)
		}
	}
	err = out.Close()
	return cmp.Or(to.err, err)
}

// parquetProperties chooses encodings: ascending times and counts shrink to their differences, texts to a dictionary.
func parquetProperties(s *arrow.Schema) *parquet.WriterProperties {
	options := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST), // of the types: nanoseconds are not in the first
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(1),
		parquet.WithDictionaryDefault(false),
		parquet.WithSortingColumns([]parquet.SortingColumn{{ColumnIdx: 0}, {ColumnIdx: 1}}),
	}
	for _, f := range s.Fields() {
		path := parquet.ColumnPath{f.Name}
		switch {
		case f.Type.ID() == arrow.DICTIONARY:
			options = append(options, parquet.WithDictionaryPath(path, true))
		case f.Type.ID() != arrow.FLOAT32:
			options = append(options, parquet.WithEncodingPath(path, parquet.Encodings.DeltaBinaryPacked))
		}
	}
	return parquet.NewWriterProperties(options...)
}

// parquetSchema translates a table's schema.
func parquetSchema(s *arrow.Schema) (*schema.GroupNode, error) {
	var fields schema.FieldList
	for _, f := range s.Fields() {
		logical, physical := schema.LogicalType(schema.NoLogicalType{}), parquet.Types.Float
		switch t := f.Type.(type) {
		case *arrow.DictionaryType:
			logical, physical = schema.StringLogicalType{}, parquet.Types.ByteArray
		case *arrow.TimestampType:
			unit := map[arrow.TimeUnit]schema.TimeUnitType{
				arrow.Millisecond: schema.TimeUnitMillis, arrow.Microsecond: schema.TimeUnitMicros, arrow.Nanosecond: schema.TimeUnitNanos,
			}[t.Unit]
			logical, physical = schema.NewTimestampLogicalTypeForce(t.TimeZone != "", unit), parquet.Types.Int64
		case *arrow.Int32Type:
			physical = parquet.Types.Int32
		}
		repetition := parquet.Repetitions.Required
		if f.Nullable {
			repetition = parquet.Repetitions.Optional
		}
		node, err := schema.NewPrimitiveNodeLogical(f.Name, repetition, logical, physical, -1, -1)
		if err != nil {
			return nil, err
		}
		fields = append(fields, node)
	}
	return schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
}

// parquetEncoder writes batches as row groups.
type parquetEncoder struct {
	out    *file.Writer
	levels []int16 // ones: definition levels of cells that are there
}

func (e *parquetEncoder) rowGroup(rec arrow.RecordBatch) error {
	group, err := e.out.AppendBufferedRowGroupChecked()
	if err != nil {
		return err
	}
	for n := int(rec.NumRows()); len(e.levels) < n; {
		e.levels = append(e.levels, 1)
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, column := range rec.Columns() {
		w, err := group.Column(i)
		if err != nil {
			return err
		}
		g.Go(func() error {
			if err := e.column(w, column); err != nil {
				return err
			}
			if flush, ok := w.(interface{ FlushBufferedDataPages() error }); ok && column.DataType().ID() != arrow.DICTIONARY {
				return flush.FlushBufferedDataPages() // else compressed when the group is closed, one after the other
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return group.Close()
}

// column writes a column of a row group into memory.
func (e *parquetEncoder) column(w file.ColumnChunkWriter, column arrow.Array) error {
	switch w := w.(type) {
	case *file.ByteArrayColumnChunkWriter:
		codes := column.(*array.Dictionary)
		texts := codes.Dictionary().(*array.String)
		values := make([]parquet.ByteArray, codes.Len())
		for i := range values {
			if codes.IsValid(i) {
				values[i] = parquet.ByteArray(texts.Value(codes.GetValueIndex(i)))
			}
		}
		return writeValues(e, w, column, values)
	case *file.Float32ColumnChunkWriter:
		return writeValues(e, w, column, column.(*array.Float32).Float32Values())
	case *file.Int64ColumnChunkWriter:
		return writeValues(e, w, column, arrow.Int64Traits.CastFromBytes(column.Data().Buffers()[1].Bytes()))
	case *file.Int32ColumnChunkWriter:
		return writeValues(e, w, column, column.(*array.Int32).Int32Values())
	}
	return fmt.Errorf("no Parquet type for %s", column.DataType())
}

// valueWriter is what Parquet's writers of columns have in common.
type valueWriter[T any] interface {
	WriteBatch(values []T, defLevels, repLevels []int16) (int64, error)
	WriteBatchSpacedWithError(values []T, defLevels, repLevels []int16, valid []byte, offset int64) (int64, error)
}

// writeValues writes values, of which some may be missing.
func writeValues[T any](e *parquetEncoder, w valueWriter[T], column arrow.Array, values []T) (err error) {
	valid := column.NullBitmapBytes()
	if valid == nil {
		_, err = w.WriteBatch(values, e.levels[:len(values)], nil)
		return err
	}
	levels := make([]int16, len(values))
	for i := range levels {
		if column.IsValid(i) {
			levels[i] = 1
		}
	}
	_, err = w.WriteBatchSpacedWithError(values, levels, nil, valid, 0)
	return err
}
