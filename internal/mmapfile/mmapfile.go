// Package mmapfile owns every memory mapping: it maps whole files read-only, gives the system advice, and turns faults
// in a mapping into errors. Nothing else imports a mapping library.
package mmapfile

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/edsrzf/mmap-go"

	"github.com/wstore/wstore/internal/f32"
)

// Map is a read-only mapping of a whole file. Writing to its bytes faults.
type Map struct{ m mmap.MMap }

// ErrTooLarge is matched when a file does not fit the address space.
var ErrTooLarge = errors.New("the file does not fit this machine's address space")

// Open maps a file of the given size, which must be greater than 0. The file may be closed afterwards.
func Open(f *os.File, size int64) (*Map, error) {
	if size <= 0 || size != int64(int(size)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", f.Name(), err)
	}
	if int64(len(m)) != size { // it grew or shrank since its size was read
		return nil, errors.Join(fmt.Errorf("mapping %s: its size changed from %d to %d", f.Name(), size, len(m)), m.Unmap())
	}
	return &Map{m}, nil
}

// Bytes returns the mapping. It is valid until Close.
func (m *Map) Bytes() []byte { return m.m }

// Close unmaps. It must be called once.
func (m *Map) Close() error { return m.m.Unmap() }

// FaultError says that the memory at an offset of a mapping could not be read: the file was truncated, or the disk
// failed.
type FaultError struct{ Offset int64 }

func (e *FaultError) Error() string {
	return fmt.Sprintf("reading the mapped file failed at byte %d: it was truncated, or its disk failed", e.Offset)
}

// Guard calls f and turns a fault in the mapping b, on this goroutine, into a FaultError. Any other panic passes
// through, and faults elsewhere stay panics.
func Guard(b []byte, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			at, ok := faultAt(b, r)
			if !ok {
				panic(r)
			}
			err = &FaultError{Offset: at}
		}
	}()
	return f()
}

func faultAt(b []byte, r any) (int64, bool) {
	fault, ok := r.(interface{ Addr() uintptr })
	if !ok || len(b) == 0 {
		return 0, false
	}
	at := fault.Addr() - f32.Address(b)
	return int64(at), at < uintptr(len(b))
}
