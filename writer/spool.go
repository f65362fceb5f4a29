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

// spool is a temporary file of blocks, one behind the other. It hashes what it is given, chunk by chunk.
type spool struct {
	fs    fsys.FS
	f     fsys.File
	end   int64  // of the blocks
	size  int64  // of the file, which has more where a block was undone
	start int64  // of the block that is being written
	buf   []byte // the block's last chunk, as yet unwritten
	sums  []byte // u64 of the block's chunks before it
}

func newSpool(fs fsys.FS, path string) (*spool, error) {
	f, err := fs.CreateTemp(path)
	if err != nil {
		return nil, err
	}
	return &spool{fs: fs, f: f, buf: make([]byte, 0, format.ChunkSize)}, nil
}

func (s *spool) begin() {
	s.start, s.sums = s.end, nil
}

// write adds to the block.
func (s *spool) write(b []byte) error {
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

func (s *spool) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	s.sums = binary.LittleEndian.AppendUint64(s.sums, xxhash.Sum64(s.buf))
	if _, err := s.f.WriteAt(s.buf, s.end); err != nil {
		return err
	}
	s.end += int64(len(s.buf))
	s.size = max(s.size, s.end)
	s.buf = s.buf[:0]
	return nil
}

// undo forgets the block that was written last.
func (s *spool) undo() { s.end = s.start }

// equal compares n bytes from a on with those from b on.
func (s *spool) equal(a, b, n int64) (bool, error) {
	var x, y [16 << 10]byte
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

// bytes returns the blocks, as a mapping where that is possible; release must be called once.
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

// copyTo copies n bytes from off on to dst at offset at.
func (s *spool) copyTo(dst io.WriterAt, at, off, n int64, buf []byte) error {
	for n > 0 {
		k := min(n, int64(len(buf)))
		if _, err := s.f.ReadAt(buf[:k], off); err != nil {
			return err
		}
		if _, err := dst.WriteAt(buf[:k], at); err != nil {
			return err
		}
		off, at, n = off+k, at+k, n-k
	}
	return nil
}

// remove closes and removes the file.
func (s *spool) remove() error {
	return errors.Join(s.f.Close(), s.fs.Remove(s.f.Name()))
}
