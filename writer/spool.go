package writer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/fsys"
)

// spool is a temporary file to which pieces are appended.
type spool struct {
	fs   fsys.FS
	f    fsys.File
	end  int64 // of the pieces
	size int64 // of the file, which has more where pieces were undone

	behind  *behind // writes while the caller goes on; nil: the caller does it
	scratch []byte  // of equal
}

func newSpool(fs fsys.FS, path string) (*spool, error) {
	f, err := fs.CreateTemp(path)
	if err != nil {
		return nil, err
	}
	return &spool{fs: fs, f: f}, nil
}

// append adds a piece, a buffer of a chunk, and returns one to go on with.
func (s *spool) append(b []byte) (off int64, next []byte, err error) {
	off = s.end
	if s.behind != nil {
		next, err = s.behind.write(b, off)
	} else {
		next = b[:0]
		_, err = s.f.WriteAt(b, off)
	}
	if err != nil {
		return 0, nil, err
	}
	s.end += int64(len(b))
	s.size = max(s.size, s.end)
	return off, next, nil
}

// wait returns when all pieces are in the file; no more are appended.
func (s *spool) wait() error {
	if s.behind == nil {
		return nil
	}
	b := s.behind
	s.behind = nil
	return b.end()
}

// undo forgets everything from an offset on.
func (s *spool) undo(off int64) { s.end = off }

// block is where a block is in a spool: several blocks may be written side by side.
type block struct {
	pieces []piece
	sums   []byte // u64 of each chunk
}

type piece struct{ off, n int64 }

// stream writes one block after another to a spool. It hashes what it is given, chunk by chunk.
type stream struct {
	*spool
	block
	buf []byte // the block's last chunk, as yet unwritten
}

func newStream(s *spool) *stream { return &stream{spool: s, buf: make([]byte, 0, format.ChunkSize)} }

func (s *stream) begin() { s.block = block{} }

// write adds to the block.
func (s *stream) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), format.ChunkSize-len(s.buf))
		s.buf = append(s.buf, b[:n]...)
		b = b[n:]
		if len(s.buf) == format.ChunkSize {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	s.sums = binary.LittleEndian.AppendUint64(s.sums, xxhash.Sum64(s.buf))
	n := int64(len(s.buf))
	off, next, err := s.append(s.buf)
	if err != nil {
		return err
	}
	s.buf = next
	if k := len(s.pieces); k > 0 && s.pieces[k-1].off+s.pieces[k-1].n == off {
		s.pieces[k-1].n += n
	} else {
		s.pieces = append(s.pieces, piece{off, n})
	}
	return nil
}

// equal compares n bytes from a on with those from b on.
func (s *spool) equal(a, b, n int64) (bool, error) {
	if s.scratch == nil {
		s.scratch = make([]byte, 32<<10)
	}
	x, y := s.scratch[:16<<10], s.scratch[16<<10:]
	for n > 0 {
		k := min(n, int64(len(x)))
		if _, err := s.f.ReadAt(x[:k], a); err != nil {
			return false, err
		}
		if _, err := s.f.ReadAt(y[:k], b); err != nil {
			return false, err
		}
		if !bytes.Equal(x[:k], y[:k]) {
			return false, nil
		}
		a, b, n = a+k, b+k, n-k
	}
	return true, nil
}

// bytes returns the pieces, as a mapping where that is possible; release must be called once.
func (s *spool) bytes() (b []byte, release func() error, err error) {
	none := func() error { return nil }
	if s.end == 0 {
		return nil, none, nil
	}
	if m, err := s.f.Map(s.size); err == nil {
		return m.Bytes()[:s.end], m.Close, nil
	}
	b = make([]byte, s.end)
	_, err = s.f.ReadAt(b, 0)
	return b, none, err
}

// copyTo copies pieces to dst, one behind the other from offset at on.
func (s *spool) copyTo(dst io.WriterAt, at int64, pieces []piece, buf []byte) error {
	for _, p := range pieces {
		for p.n > 0 {
			k := min(p.n, int64(len(buf)))
			if _, err := s.f.ReadAt(buf[:k], p.off); err != nil {
				return err
			}
			if _, err := dst.WriteAt(buf[:k], at); err != nil {
				return err
			}
			p.off, at, p.n = p.off+k, at+k, p.n-k
		}
	}
	return nil
}

// remove closes and removes the file.
func (s *spool) remove() error {
	_ = s.wait() // whatever came of it, the file goes
	return errors.Join(s.f.Close(), s.fs.Remove(s.f.Name()))
}

// behind writes to a file on a goroutine of its own.
type behind struct {
	jobs chan job
	done chan job // with the buffers to use again
	last chan error
}

type job struct {
	b   []byte
	off int64
	err error // of this job or an earlier one
}

// buffersBehind is how many chunks may wait to be written.
const buffersBehind = 8

func newBehind(f io.WriterAt) *behind {
	w := &behind{make(chan job, buffersBehind), make(chan job, buffersBehind), make(chan error, 1)}
	for range buffersBehind {
		w.done <- job{b: make([]byte, 0, format.ChunkSize)}
	}
	go func() {
		var err error
		for j := range w.jobs {
			if err == nil {
				_, err = f.WriteAt(j.b, j.off)
			}
			w.done <- job{b: j.b[:0], err: err}
		}
		w.last <- err
	}()
	return w
}

// write takes the buffer b over and returns an empty one, or the error of an earlier call.
func (w *behind) write(b []byte, off int64) ([]byte, error) {
	free := <-w.done
	if free.err != nil {
		return nil, free.err
	}
	w.jobs <- job{b: b, off: off}
	return free.b, nil
}

// end waits until everything is written.
func (w *behind) end() error {
	close(w.jobs)
	return <-w.last
}
