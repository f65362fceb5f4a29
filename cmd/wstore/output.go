package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/wstore/wstore/internal/fsys"
)

// checkFile refuses the name of a file that must not be written to.
func checkFile(path string, force bool, input string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if in, err := os.Stat(input); err == nil && os.SameFile(in, info) {
		return usagef("the output %s is the input; choose another name", path)
	}
	switch {
	case info.IsDir():
		return tell(fs.ErrExist, "the output %s is a folder; name a file in it", path)
	case !info.Mode().IsRegular():
		return tell(fs.ErrExist, "the output %s is not a regular file; choose another name, or leave -o out", path)
	case !force:
		return tell(fs.ErrExist, "%s exists; --force replaces it", path)
	}
	return nil
}

// outFile is a file that gets its name when it is complete.
type outFile struct {
	*bufio.Writer
	file  fsys.File
	path  string
	force bool
}

func createFile(path string, force bool) (*outFile, error) {
	f, err := fsys.OS{}.CreateTemp(path)
	if err != nil {
		return nil, creating(path, err)
	}
	return &outFile{bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 256<<10), f, path, force}, nil
}

// finish makes what was written durable and gives it its name, or removes it if err is an error or one comes up.
func (o *outFile) finish(err error) error {
	if err == nil {
		err = errors.Join(o.Flush(), o.file.Sync())
	}
	err = errors.Join(err, o.file.Close())
	if err == nil {
		err = fsys.OS{}.Publish(o.file.Name(), o.path, o.force)
	}
	if err == nil {
		return nil
	}
	if e := (fsys.OS{}).Remove(o.file.Name()); !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// outFolder is a folder that gets its name when it is complete. Files are created in temp.
type outFolder struct {
	temp, path string
	force      bool
}

func createFolder(path string, force bool) (*outFolder, error) {
	path = filepath.Clean(path)
	o := &outFolder{besides(path), path, force}
	if err := os.Mkdir(o.temp, 0o777); err != nil {
		return nil, creating(path, err)
	}
	return o, nil
}

// creating names the output in an error about its temporary neighbour.
func creating(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return tell(err, "creating %s: %s", path, p.Err)
	}
	return err
}

// besides returns a name beside path that nobody has.
func besides(path string) string {
	dir, base := filepath.Split(path)
	return filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base, rand.Uint32()))
}

// checkFolder refuses to replace what is not a folder of arrays: --force must not delete a home folder.
func checkFolder(path string, force bool) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return tell(fs.ErrExist, "%s exists and is not a folder; choose another name", path)
	}
	if !force {
		return tell(fs.ErrExist, "%s exists; --force replaces it", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isArrayFile(e.Name()) {
			return tell(fs.ErrExist, "%s holds %s, which no export wrote; choose another folder", path, e.Name())
		}
	}
	return nil
}

// finish gives the folder its name, or removes it if err is an error or one comes up.
func (o *outFolder) finish(err error) error {
	if err == nil {
		err = o.publish()
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, os.RemoveAll(o.temp))
}

func (o *outFolder) publish() error {
	if err := checkFolder(o.path, o.force); err != nil {
		return err
	}
	old := besides(o.path)
	err := os.Rename(o.path, old)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(o.temp, o.path)
	case err != nil:
		return err
	}
	if err := os.Rename(o.temp, o.path); err != nil {
		return errors.Join(err, os.Rename(old, o.path))
	}
	return os.RemoveAll(old)
}
