package fsys

import (
	"errors"
	"sync/atomic"
)

// ErrInjected is the error of an operation that [Faulty] made fail.
var ErrInjected = errors.New("injected fault")

// Faulty passes everything to another file system, but makes the n-th operation fail (counted from 0 over files and
// directories together; mapping and removing never fail). With Short a failing write writes half of its bytes first, as
// on a full disk.
type Faulty struct {
	FS    FS
	N     int64
	Short bool
	count atomic.Int64
}

// Failed reports whether the operation to fail was reached.
func (f *Faulty) Failed() bool { return f.count.Load() > f.N }

func (f *Faulty) next() error {
	if f.count.Add(1)-1 == f.N {
		return ErrInjected
	}
	return nil
}

// CreateTemp implements [FS].
func (f *Faulty) CreateTemp(path string) (File, error) {
	if err := f.next(); err != nil {
		return nil, err
	}
	file, err := f.FS.CreateTemp(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

// Publish implements [FS].
func (f *Faulty) Publish(temp, path string, overwrite bool) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.FS.Publish(temp, path, overwrite)
}

// Remove implements [FS]. Removing never fails: it is what cleans up after a fault.
func (f *Faulty) Remove(name string) error { return f.FS.Remove(name) }

type faultyFile struct {
	File
	fs *Faulty
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.next(); err != nil {
		n := 0
		if f.fs.Short {
			n, _ = f.File.WriteAt(b[:len(b)/2], off)
		}
		return n, err
	}
	return f.File.WriteAt(b, off)
}

func (f *faultyFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fs.next(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.next(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Close() error {
	return errors.Join(f.fs.next(), f.File.Close())
}
