package convert

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wstore/wstore/internal/fsys"
)

// spool is a temporary file that holds a stream, which can be read only once. A nil one holds nothing.
type spool struct {
	fs   fsys.FS
	file fsys.File
	size int64
}

const spoolPiece = 1 << 20

// fill copies the stream to a file beside another. When ctx ends it returns at once, and leaves a goroutine that waits for
// the stream's next bytes.
func (s *spool) fill(ctx context.Context, r io.Reader, beside string, told func(int64)) (err error) {
	if s.file, err = s.fs.CreateTemp(beside); err != nil {
		return s.broken(err)
	}
	type piece struct {
		b   []byte
		err error
	}
	free, full := make(chan []byte, 2), make(chan piece, 2)
	free <- make([]byte, spoolPiece)
	free <- make([]byte, spoolPiece)
	go func() {
		for b := range free {
			n, err := r.Read(b)
			full <- piece{b[:n], err} // never blocks: there are two pieces
			if err != nil {
				return
			}
		}
	}()
	defer close(free)
	for {
		var p piece
		select {
		case p = <-full:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(p.b) > 0 {
			if _, err := s.file.WriteAt(p.b, s.size); err != nil {
				return s.broken(err)
			}
			s.size += int64(len(p.b))
			if told != nil {
				told(int64(len(p.b)))
			}
		}
		if p.err == io.EOF {
			return nil
		}
		if p.err != nil {
			return fmt.Errorf("standard input: %w", p.err)
		}
		free <- p.b[:cap(p.b)]
	}
}

func (s *spool) broken(err error) error {
	return fmt.Errorf("copying standard input to a temporary file: %w; free space beside the output", err)
}

// close removes the file. A second call does nothing.
func (s *spool) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return errors.Join(f.Close(), s.fs.Remove(f.Name()))
}
