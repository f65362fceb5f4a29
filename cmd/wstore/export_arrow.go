package main

import (
	"cmp"
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// writeArrow writes the rows as an Arrow stream, or as an Arrow file.
func (p *panel) writeArrow(ctx context.Context, w io.Writer, stream bool) error {
	t, err := p.newTable("Arrow", p.s.Meta().Schema.Unit)
	if err != nil {
		return err
	}
	var out interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	to := &sink{w: w}
	if stream {
		out = ipc.NewWriter(to, ipc.WithSchema(t.schema))
	} else if out, err = ipc.NewFileWriter(to, ipc.WithSchema(t.schema)); err != nil {
		return err
	}
	for rec, err := range t.batches(ctx, 64<<10, 4<<20) {
		if err == nil {
			err = out.Write(rec)
		}
		if err != nil {
			return cmp.Or(to.err, err)
		}
	}
	err = out.Close()
	return cmp.Or(to.err, err)
}

// sink remembers the first error of writing, which encoders may hide behind one of their own.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.err = cmp.Or(s.err, err)
	return n, err
}
