package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the largest window of a zstd stream, which its decoder keeps in
// memory: that of `zstd --long`. Without --long it is 8 MiB at most.
const zstdWindow = 128 << 20

// input is an open source: a file, or one of a zip archive, decompressed as a
// stream and read as text in UTF-8 without a byte order mark. Whatever the file
// claims or holds, it takes some buffers and a window of at most 128 MiB.
type input struct {
	path     string
	file     *os.File
	stored   io.Reader // the bytes as they are stored, of file or a part of it
	read     func(n int)
	err      error  // of the file itself, so that it is told from damage
	packing  string // "gzip stream", "zstd stream", "zip entry"; "" if it is plain
	encoding string // of the text, as it is called in reports; "" for UTF-8
	text     io.Reader
	closing  func() // frees the decoder; nil: nothing to free
}

// open opens a source and looks at its first bytes. The encoding of text that
// does not say so itself is the given one, or found out if it is "". read, if it
// is not nil, is told how many stored bytes have been read.
func open(src Source, encoding string, read func(n int)) (*input, error) {
	f, err := os.Open(src.File())
	if err != nil {
		return nil, err
	}
	in := &input{path: src.Path, file: f, stored: f, read: read}
	text, err := in.unpack(src.entry)
	if err == nil {
		in.text, in.encoding, err = decode(src.Path, text, encoding)
	}
	if err != nil {
		err = in.damaged(err)
		in.Close()
		return nil, err
	}
	return in, nil
}

// unpack finds out how the source is compressed and returns what it holds.
func (in *input) unpack(e *zipEntry) (io.Reader, error) {
	if e != nil {
		in.packing = "zip entry"
		return in.openEntry(e)
	}
	var magic [4]byte
	if _, err := in.file.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case [2]byte(magic[:2]) == [2]byte{0x1f, 0x8b}:
		in.packing = "gzip stream"
		return newMembers(bufio.NewReaderSize(storedBytes{in}, 256<<10))
	case magic == [4]byte{0x28, 0xb5, 0x2f, 0xfd}, magic[0]&0xf0 == 0x50 && [3]byte(magic[1:]) == [3]byte{0x2a, 0x4d, 0x18}: // a skippable frame
		return in.unzstd(storedBytes{in})
	}
	return storedBytes{in}, nil
}

func (in *input) unzstd(r io.Reader) (io.Reader, error) {
	in.packing = "zstd stream"
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return nil, err
	}
	in.closing = z.Close
	return z, nil
}

// storedBytes reads the bytes of the source as they are stored.
type storedBytes struct{ in *input }

func (r storedBytes) Read(b []byte) (int, error) {
	n, err := r.in.stored.Read(b)
	if r.in.read != nil && n > 0 {
		r.in.read(n)
	}
	if err != nil && err != io.EOF {
		r.in.err = err
	}
	return n, err
}

// members reads the members of a gzip file one after the other. Zeros behind the
// last, as tapes and block devices leave them, are no part of it; anything else
// is an error.
type members struct {
	b *bufio.Reader
	z *gzip.Reader
}

var errBehindGzip = errors.New("something that is no gzip follows it")

func newMembers(b *bufio.Reader) (*members, error) {
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{b, z}, nil
}

func (m *members) Read(b []byte) (int, error) {
	for {
		n, err := m.z.Read(b)
		if err != io.EOF {
			return n, err
		}
		if err := m.next(); err != nil {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// next begins the next member; io.EOF says that there is none.
func (m *members) next() error {
	padded := false
	for {
		c, err := m.b.ReadByte()
		switch {
		case err != nil: // io.EOF too
			return err
		case c == 0:
			padded = true
			continue
		case padded || c != 0x1f:
			return errBehindGzip
		}
		if err := m.b.UnreadByte(); err != nil {
			return err
		}
		if err := m.z.Reset(m.b); err != nil {
			return err
		}
		m.z.Multistream(false)
		return nil
	}
}

// Read reads text. It returns io.EOF, an *UnusableError for a damaged file, or
// the file's own error.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.text.Read(b)
	if err != nil && err != io.EOF {
		err = in.damaged(err)
	}
	return n, err
}

// damaged says what is wrong with the source, if it is not the file's own error.
func (in *input) damaged(err error) error {
	var known *UnusableError
	switch {
	case in.err != nil:
		return in.err
	case in.packing == "", errors.As(err, &known):
		return err
	}
	e := &UnusableError{Path: in.path, Reason: "its " + in.packing + " is damaged", Hint: "fetch or compress it again", Err: err}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Reason, e.Err = "its "+in.packing+" is cut short", nil
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		e.Reason, e.Hint, e.Err = fmt.Sprintf("its %s needs more than %d MiB of memory", in.packing, zstdWindow>>20), "decompress it first", nil
	case errors.Is(err, zstd.ErrUnknownDictionary):
		e.Reason, e.Hint, e.Err = "its "+in.packing+" needs a dictionary", "decompress it first", nil
	}
	return e
}

func (in *input) Close() error {
	if in.closing != nil {
		in.closing()
	}
	return in.file.Close()
}
