// Package fsys is the seam between writers and the file system, so that tests can make any operation fail.
package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/wstore/wstore/internal/mmapfile"
)

// File is a file that is being written.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Sync() error
	// Map maps the file, which must have exactly size > 0 bytes, for reading.
	Map(size int64) (*mmapfile.Map, error)
}

// FS is what a writer does to directories and files.
type FS interface {
	// CreateTemp creates a file with a name of its own beside path, to be renamed to it or removed.
	CreateTemp(path string) (File, error)
	// Publish gives the closed file temp the name path, durably. Unless overwrite is set, an existing path is kept and the
	// error matches fs.ErrExist.
	Publish(temp, path string, overwrite bool) error
	Remove(name string) error
}

// OS is the operating system's file system.
type OS struct{}

// CreateTemp implements [FS]. The file gets the permissions that the process gives to new files.
func (OS) CreateTemp(path string) (File, error) {
	dir, base := filepath.Split(path)
	if most := 200; len(base) > most { // names have 255 bytes at most, and this one gets longer
		base = strings.ToValidUTF8(base[:most], "")
	}
	for range 100 {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base, rand.Uint32()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return osFile{f}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no free name for a temporary file beside %s", path)
}

// Publish implements [FS].
func (OS) Publish(temp, path string, overwrite bool) error {
	if !overwrite {
		// A link fails if the name exists, a rename would replace it. Not every file system has links.
		switch err := os.Link(temp, path); {
		case err == nil:
			return errors.Join(os.Remove(temp), syncDir(path))
		case errors.Is(err, fs.ErrExist):
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		if _, err := os.Lstat(path); err == nil {
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(path)
}

// Remove implements [FS].
func (OS) Remove(name string) error { return os.Remove(name) }

func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // directories can't be synced there
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
