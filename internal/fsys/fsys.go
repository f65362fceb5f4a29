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
	"regexp"
	"runtime"
	"strings"
	"sync"

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
	// CreateTemp creates a file with a name of its own beside path, to be published or removed.
	CreateTemp(path string) (File, error)
	// Publish gives the closed file temp the name path, durably. Unless overwrite is set, an existing path is kept and the
	// error matches fs.ErrExist.
	Publish(temp, path string, overwrite bool) error
	Remove(name string) error
}

// OS is the operating system's file system.
type OS struct{}

// CreateTemp implements [FS]. The file gets the permissions that the process gives to new files. It counts as in use
// until it is published or removed. Files that processes for the same path left behind when they were killed are removed
// before.
func (OS) CreateTemp(path string) (File, error) {
	dir, base := filepath.Split(path)
	if most := 200; len(base) > most { // names have 255 bytes at most, and this one gets longer
		base = strings.ToValidUTF8(base[:most], "")
	}
	removeAbandoned(dir, base)
	for range 100 {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%d-%08x.tmp", base, os.Getpid(), rand.Uint32()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held, ok := lock(name)
		if !ok || !names(name, f) { // somebody took it for abandoned before it was marked
			_ = f.Close()
			continue
		}
		inUse.Store(name, held)
		return osFile{f}, nil
	}
	return nil, fmt.Errorf("no free name for a temporary file beside %s", path)
}

// inUse holds the marks of the temporary files of this process, by their names.
var inUse sync.Map

// release takes the mark from a file.
func release(name string) {
	if held, ok := inUse.LoadAndDelete(name); ok {
		_ = held.(*os.File).Close() // nil where there are no marks, which is an error that doesn't matter
	}
}

// names reports whether a name is still that of a file.
func names(name string, f *os.File) bool {
	here, err := os.Lstat(name)
	info, err2 := f.Stat()
	return err == nil && err2 == nil && os.SameFile(here, info)
}

// removeAbandoned removes the temporary files of a base name that no process uses. It doesn't matter if it can't.
func removeAbandoned(dir, base string) {
	entries, _ := os.ReadDir(filepath.Join(dir, "."))
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base+".")
		if !ok || !e.Type().IsRegular() || !temporary.MatchString(rest) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		if held, yes := abandoned(name); yes {
			_ = os.Remove(name)
			if held != nil {
				_ = held.Close()
			}
		}
	}
}

// temporary is the end of a temporary file's name.
var temporary = regexp.MustCompile(`^\d+-[0-9a-f]{8}\.tmp$`)

// Publish implements [FS].
func (OS) Publish(temp, path string, overwrite bool) error {
	err := publish(temp, path, overwrite)
	if _, left := os.Lstat(temp); left != nil {
		release(temp)
	}
	return err
}

func publish(temp, path string, overwrite bool) error {
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
func (OS) Remove(name string) error {
	err := os.Remove(name)
	release(name)
	return err
}

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
