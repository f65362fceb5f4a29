package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// input is an open source: a plain or gzip file read as text.
type input struct {
	path string
	file *os.File
	r    io.Reader
	err  error // of the file itself, so that it is told from damage of the gzip stream
	read func(n int)
}

// open opens a file and looks at its magic. read, if it is not nil, is told how
// many bytes of the file have been read.
func open(path string, read func(n int)) (*input, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := &input{path: path, file: f, read: read}
	var magic [2]byte
	n, err := f.ReadAt(magic[:], 0)
	switch {
	case err != nil && err != io.EOF:
	case n == 2 && magic == [2]byte{0x1f, 0x8b}:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bufio.NewReaderSize(rawInput{in}, 256<<10)); err == nil {
			in.r = z
			return in, nil
		}
		err = in.damaged(err)
	default:
		in.r = rawInput{in}
		return in, nil
	}
	f.Close()
	return nil, err
}

// rawInput reads the bytes of the file as they are stored.
type rawInput struct{ in *input }

func (r rawInput) Read(b []byte) (int, error) {
	n, err := r.in.file.Read(b)
	if r.in.read != nil && n > 0 {
		r.in.read(n)
	}
	if err != nil && err != io.EOF {
		r.in.err = err
	}
	return n, err
}

// Read reads text. It returns io.EOF, an *UnusableError for a damaged gzip
// stream, or the file's own error.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.r.Read(b)
	if err != nil && err != io.EOF {
		err = in.damaged(err)
	}
	return n, err
}

func (in *input) damaged(err error) error {
	if in.err != nil {
		return in.err
	}
	e := &UnusableError{Path: in.path, Reason: "its gzip stream is damaged", Hint: "fetch or compress it again", Err: err}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Reason, e.Err = "its gzip stream is cut short", nil
	}
	return e
}

func (in *input) Close() error { return in.file.Close() }

// chunk is a piece of one source that holds whole rows. It is passed from the
// splitter to a worker and on to the consumer, and then used again.
type chunk struct {
	source int
	line   int64  // 1-based line of the first byte
	text   []byte // whole rows, the last of which ends in LF
	err    error  // what ends the input after these rows

	buf  []byte
	done chan struct{} // a worker has finished
	out  result
}

// split cuts the sources into chunks, which it takes from free and hands to emit
// in order. The last chunk carries the error that ended the input, if any. It
// returns early where emit returns false.
func (s *Survey) split(free func() *chunk, emit func(*chunk) bool, read func(n int)) {
	var tail []byte
	for i, src := range s.Sources {
		h := s.layouts[i]
		if h == nil {
			continue
		}
		ok := func() bool {
			fail := func(err error) bool {
				c := free()
				if c == nil {
					return false
				}
				c.source, c.text, c.err = i, nil, err
				emit(c)
				return false
			}
			in, err := open(src.Path, read)
			if err != nil {
				return fail(err)
			}
			defer in.Close()
			line, first := int64(1), true
			for tail = tail[:0]; ; {
				c := free()
				if c == nil {
					return false
				}
				if c.buf == nil {
					c.buf = make([]byte, s.chunk+1+slack) // with room for a missing last LF
				}
				n := copy(c.buf, tail)
				// Chunks are filled, so that where they end depends on the text only.
				m, err := io.ReadFull(in, c.buf[n:s.chunk])
				b := c.buf[:n+m]
				last := err == io.EOF || err == io.ErrUnexpectedEOF
				if err != nil && !last {
					// What was read before is not looked at: the file is damaged.
					c.source, c.text, c.err = i, nil, err
					emit(c)
					return false
				}
				rows := len(b)
				if !last {
					if rows = lastRow(b); rows == 0 {
						c.source, c.text, c.err = i, nil, errLongRow(src.Path, line)
						emit(c)
						return false
					}
				}
				tail = append(tail[:0], b[rows:]...)
				c.source, c.err, c.text = i, nil, b[:rows]
				if first {
					first = false
					if !bytes.HasPrefix(c.text, []byte(h.raw)) {
						c.text, c.err = nil, &UnusableError{Path: src.Path, Reason: "was changed while it was being read", Hint: "try again"}
						emit(c)
						return false
					}
					c.text = c.text[len(h.raw):]
					line += int64(bytes.Count([]byte(h.raw), []byte("\n")))
				}
				c.line = line
				line += int64(bytes.Count(c.text, []byte("\n")))
				if n := len(c.text); n > 0 && c.text[n-1] != '\n' {
					c.text = append(c.text, '\n') // within c.buf
				}
				if !emit(c) {
					return false
				}
				if last {
					return true
				}
			}
		}()
		if !ok {
			return
		}
	}
}

// lastRow is the length of the whole rows at the beginning of b, which begins
// with a row: up to the last LF outside quotes.
func lastRow(b []byte) int {
	quotes := bytes.Count(b, []byte(`"`))
	for n := len(b); ; {
		i := bytes.LastIndexByte(b[:n], '\n')
		if i < 0 {
			return 0
		}
		if quotes > 0 {
			quotes -= bytes.Count(b[i:n], []byte(`"`))
		}
		if quotes&1 == 0 {
			return i + 1
		}
		n = i
	}
}

func errLongRow(path string, line int64) error {
	return &RowError{Path: path, Line: line, Reason: fmt.Sprintf("no row ends within %d bytes, the longest row that is read", chunkSize),
		Hint: "look for a quote that is not closed, or for a file that is not CSV"}
}
