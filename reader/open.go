package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/internal/mmapfile"
	"github.com/wstore/wstore/internal/near"
)

// Access is how a store reads its file.
type Access uint8

const (
	// Map maps the file into memory: no copy, pages are read when they are touched and shared with other processes.
	Map Access = iota
	// Load reads the whole file into memory when it is opened, at most Options.LoadLimit bytes.
	Load
	// Read reads with system calls. Views copy; Gather reads in the order of the file. For network file systems, 32-bit
	// and big-endian machines, and files from others that are larger than memory.
	Read
)

// Options are the choices of opening. The zero value maps the file and checks its structure.
type Options struct {
	Access    Access
	LoadLimit int64 // bytes that Load may take; 0: no limit
	Verify    bool  // check all checksums too, as Store.Verify does
}

// Store is an open file. Its methods may be called from any goroutine.
type Store struct {
	path string
	abs  string // the path, whatever becomes of the working directory
	meta *format.Meta
	size int64
	info os.FileInfo // of the file when it was opened; nil of bytes
	src  io.ReaderAt
	file *os.File // nil of bytes
	data []byte   // the whole file; nil with Read
	m    *mmapfile.Map

	cells  []float32      // data as numbers; nil with Read
	ticker map[string]int // number by name
	column map[string]int // number by name
	group  map[string]int
	places []format.Place
	base   []int // first column's number of each group

	rowBytes []int64 // of each group

	refs   atomic.Int64 // views and calls that use the mapping, and 1 until Close
	closed atomic.Bool
	warm   atomic.Int64 // gathers that need not look whether the file is in memory
	random struct {     // readers at random: see prefetcher
		sync.Mutex
		readers int
	}
	gone   chan struct{} // closed when the mapping is
	goneBy sync.Once
	err    error // of unmapping; read it after gone
}

// Open opens a file and checks its structure: SPEC section 9. Afterwards no window can lie outside the file. Time and
// memory are those of the catalog and the sections, not of the data. What is wrong with a file is a
// [format.CorruptError] or a [format.UnsupportedError].
func Open(path string, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	// Looked at first: opening a pipe would wait for its other end.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if err := checkRegular(path, info); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := open(f, path, o)
	if err != nil {
		return nil, errors.Join(format.WithPath(err, path), f.Close())
	}
	if o.Verify {
		if err := s.Verify(context.Background()); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func checkRegular(path string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name a .wst file, or convert the folder's CSV files with `wstore convert`", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; copy what it gives to a file", path)
	}
	return nil
}

func open(f *os.File, path string, o *Options) (*Store, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, err
	}
	s := &Store{path: path, size: info.Size(), info: info, src: f, file: f, gone: make(chan struct{})}
	if s.abs, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if s.meta, err = s.decode(); err != nil {
		return nil, err
	}
	switch o.Access {
	case Map:
		if !f32.Native {
			return nil, fmt.Errorf("%s: this machine is big-endian and can't map the file; open it with Access: Read", path)
		}
		if s.m, err = mmapfile.Open(f, s.size); err != nil {
			return nil, fmt.Errorf("%w; open it with Access: Read", err)
		}
		s.data = s.m.Bytes()
	case Load:
		if o.LoadLimit > 0 && s.size > o.LoadLimit {
			return nil, fmt.Errorf("%s: %d bytes are more than the limit of %d; open it with Access: Map", path, s.size, o.LoadLimit)
		}
		if !fits(s.size) {
			return nil, fmt.Errorf("%s: %d bytes: %w; open it with Access: Read", path, s.size, mmapfile.ErrTooLarge)
		}
		b := f32.AlignedBytes(int(s.size))
		if _, err := io.ReadFull(io.NewSectionReader(f, 0, s.size), b); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		s.data = b
	case Read:
	default:
		return nil, fmt.Errorf("access %d does not exist", o.Access)
	}
	if err := s.prepare(); err != nil {
		if s.m != nil {
			err = errors.Join(err, s.m.Close())
		}
		return nil, err
	}
	return s, nil
}

// OpenBytes opens a file that is in memory. The bytes must not change until the store is closed and its views are
// released. They are copied if they are not aligned for 8-byte numbers. Stale reports false.
func OpenBytes(b []byte, o *Options) (*Store, error) {
	s := &Store{path: "(bytes)", size: int64(len(b)), src: bytes.NewReader(b), gone: make(chan struct{})}
	var err error
	if s.meta, err = s.decode(); err != nil {
		return nil, format.WithPath(err, s.path)
	}
	if o == nil {
		o = &Options{}
	}
	if o.Access != Read {
		if _, aligned := f32.ViewInt64(b[:0]); !aligned {
			b = append(f32.AlignedBytes(len(b))[:0], b...)
		}
		s.data = b
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if o.Verify {
		if err := s.Verify(context.Background()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// fits reports whether n bytes can be asked of the runtime, which panics beyond.
func fits(n int64) bool { return n == int64(int(n)) && n < 1<<47 }

// decode reads slots, catalog and sections. A file that changes meanwhile is read again, so that a slot seen while it
// was written is not reported as damage.
func (s *Store) decode() (*format.Meta, error) {
	const tries = 5
	for try := 1; ; try++ {
		var reads [][2]int64
		var seen [][]byte
		meta, err := format.Decode(s.size, func(off, n int64) ([]byte, error) {
			b, err := s.readAt(off, n)
			if len(reads) < 2 { // the head and the catalog
				reads, seen = append(reads, [2]int64{off, n}), append(seen, b)
			}
			return b, err
		})
		if s.file == nil || try == tries {
			return meta, err
		}
		same := true
		for i, r := range reads {
			again, err := s.readAt(r[0], r[1])
			same = same && err == nil && bytes.Equal(again, seen[i])
		}
		info, statErr := s.file.Stat()
		if statErr != nil {
			return nil, statErr
		}
		if same && info.Size() == s.size {
			return meta, err
		}
		s.size, s.info = info.Size(), info
	}
}

func (s *Store) readAt(off, n int64) ([]byte, error) {
	if !fits(n) {
		return nil, fmt.Errorf("reading %d bytes of %s: %w", n, s.path, mmapfile.ErrTooLarge)
	}
	b := make([]byte, n)
	if n == 0 { // which some readers take for the end of the file
		return b, nil
	}
	return b, s.readInto(b, off)
}

// readInto fills b with the bytes from off on.
func (s *Store) readInto(b []byte, off int64) error {
	n, err := s.src.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return s.shorter(off + int64(n))
	}
	return fmt.Errorf("reading %d bytes at %d of %s: %w", len(b), off, s.path, err)
}

// prepare builds what queries need.
func (s *Store) prepare() error {
	s.refs.Store(1)
	if s.data != nil {
		var ok bool
		if s.cells, ok = f32.View(s.data[:len(s.data)&^7]); !ok {
			return fmt.Errorf("%s: this machine can't view the file's numbers; open it with Access: Read", s.path)
		}
	}
	m := s.meta
	s.ticker = make(map[string]int, len(m.Tickers.Names))
	for i, n := range m.Tickers.Names {
		s.ticker[n] = i
	}
	s.places = m.Schema.Places()
	s.column = make(map[string]int, len(s.places))
	s.group = make(map[string]int, len(m.Schema.Groups))
	for i, p := range s.places {
		s.column[m.Schema.Groups[p.Group].Columns[p.Column].Name] = i
	}
	s.rowBytes = m.Schema.RowBytes()
	s.base = make([]int, len(m.Schema.Groups))
	n := 0
	for i := range m.Schema.Groups {
		s.group[m.Schema.Groups[i].Name] = i
		s.base[i] = n
		n += len(m.Schema.Groups[i].Columns)
	}
	return nil
}

// Path returns the name that the store was opened with.
func (s *Store) Path() string { return s.path }

// Meta returns the decoded catalog and sections, which must not be changed.
func (s *Store) Meta() *format.Meta { return s.meta }

// Tickers returns the names in ascending order of bytes. The slice must not be changed.
func (s *Store) Tickers() []string { return s.meta.Tickers.Names }

// Rows returns the number of rows of a ticker, by its number.
func (s *Store) Rows(ticker int) int64 { return s.meta.Tickers.Rows[ticker] }

// Ticker returns the number of a ticker, or an error that matches ErrNotFound.
func (s *Store) Ticker(name string) (int, error) {
	if i, ok := s.ticker[name]; ok {
		return i, nil
	}
	return 0, s.notFound("ticker", name, s.meta.Tickers.Names)
}

// Group returns the number of a group, or an error that matches ErrNotFound.
func (s *Store) Group(name string) (int, error) {
	if i, ok := s.group[name]; ok {
		return i, nil
	}
	var names []string
	for _, g := range s.meta.Schema.Groups {
		names = append(names, g.Name)
	}
	return 0, s.notFound("group", name, names)
}

// Categories returns the texts that the cells of a column are the numbers of, ascending by bytes, or nil if it has none.
// An unknown column is an error that matches ErrNotFound. The slice must not be changed.
func (s *Store) Categories(column string) ([]string, error) {
	k, ok := s.column[column]
	if !ok {
		var names []string
		for _, p := range s.places {
			names = append(names, s.meta.Schema.Groups[p.Group].Columns[p.Column].Name)
		}
		return nil, s.notFound("column", column, names)
	}
	for _, d := range s.meta.Categories {
		if d.Column == k {
			return d.Categories, nil
		}
	}
	return nil, nil
}

// Attributes returns the static values of tickers, ascending by name. They must not be changed.
func (s *Store) Attributes() []*format.Attribute { return s.meta.Attributes }

// Attribute returns the attribute of a name, or an error that matches ErrNotFound.
func (s *Store) Attribute(name string) (*format.Attribute, error) {
	var names []string
	for _, a := range s.meta.Attributes {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return nil, s.notFound("attribute", name, names)
}

// Warning returns what is wrong with a file that can be read nevertheless, or nil: a damaged second slot.
func (s *Store) Warning() error {
	if d := s.meta.Damaged; d != nil {
		return format.WithPath(d, s.path)
	}
	return nil
}

// Provenance returns the JSON text that says where the data came from, or nil.
func (s *Store) Provenance() ([]byte, error) {
	sec := s.meta.Section(format.TagProvenance)
	if sec == nil {
		return nil, nil
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.release()
	b, err := s.readAt(sec.Offset, sec.Length)
	if err != nil {
		return nil, err
	}
	return b, format.WithPath(sec.Check(b), s.path)
}

// Stale reports whether another file stands under the store's name now, or this one was changed in place. The store
// goes on reading what it opened; a file that was changed in place must be opened again.
func (s *Store) Stale() (bool, error) {
	if s.file == nil {
		return false, nil
	}
	if err := s.acquire(); err != nil {
		return false, err
	}
	defer s.release()
	now, err := s.file.Stat()
	if err != nil {
		return false, err
	}
	if now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) {
		return true, nil
	}
	named, err := os.Stat(s.abs)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return err == nil && !os.SameFile(named, s.info), err
}

// acquire takes a lease on the mapping.
func (s *Store) acquire() error {
	for {
		n := s.refs.Load()
		if n == 0 || s.closed.Load() {
			return fmt.Errorf("%w: %s", ErrClosed, s.path)
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

func (s *Store) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	s.goneBy.Do(func() {
		if s.m != nil {
			s.err = s.m.Close()
		}
		if s.file != nil {
			s.err = errors.Join(s.err, s.file.Close())
		}
		close(s.gone)
	})
}

// Close makes everything that is begun from now on fail with ErrClosed. It does not wait: what is in progress, and
// views that are not released, keep the mapping. A second call does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.release()
	select {
	case <-s.gone:
		return s.err
	default:
		return nil
	}
}

// CloseWait closes the store and waits until its mapping is gone, or ctx ends.
func (s *Store) CloseWait(ctx context.Context) error {
	if err := s.Close(); err != nil {
		return err
	}
	select {
	case <-s.gone:
		return s.err
	default:
	}
	select {
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guard runs f on this goroutine and turns a fault in the mapping into an error with the path and the byte. A file that
// is shorter now is one too: behind its new end, up to the end of the page, the mapping reads as zeros without a fault.
func (s *Store) guard(f func() error) error {
	if s.m == nil {
		return f()
	}
	err := mmapfile.Guard(s.data, f)
	var fault *mmapfile.FaultError
	switch {
	case errors.As(err, &fault):
		return &format.CorruptError{Path: s.path, Offset: fault.Offset, Code: format.Truncated, Detail: fault.Error()}
	case err != nil:
		return err
	}
	info, err := s.file.Stat()
	if err == nil && info.Size() < s.size {
		return s.shorter(info.Size())
	}
	return err
}

// shorter is the error of a file that ends at a byte now.
func (s *Store) shorter(end int64) error {
	return &format.CorruptError{
		Path: s.path, Offset: end, Code: format.Truncated, Detail: "it became shorter while it was open; open it again",
	}
}

func (s *Store) notFound(kind, name string, names []string) error {
	return &NotFoundError{Path: s.path, Kind: kind, Name: name, Near: near.Names(name, names)}
}
