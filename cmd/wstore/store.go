package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/reader"
)

// open opens the store that the user named. Its structure is checked; damage that leaves it readable is a warning.
func (a *app) open(path string) (*reader.Store, error) {
	s, err := openStore(path)
	if err != nil {
		return nil, err
	}
	if w := s.Warning(); w != nil {
		a.note("warning: %s", w)
	}
	return s, nil
}

func openStore(path string) (*reader.Store, error) {
	// Look before opening: opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, tell(err, "%s does not exist; %s", path, stores(filepath.Dir(path)))
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, tell(errUnusable, "%s is a folder; name a .wst file, or make one of the folder's CSV files with `wstore convert`", path)
	case !info.Mode().IsRegular():
		return nil, tell(errUnusable, "%s is not a regular file; copy what it gives to one", path)
	}
	o := &reader.Options{Access: reader.Map}
	if !f32.Native || strconv.IntSize < 64 { // it can't be mapped, or may not fit
		o.Access = reader.Read
	}
	return reader.Open(path, o)
}

// stores tells which stores a folder has.
func stores(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "neither does its folder"
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".wst" {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return "its folder has no .wst file; make one with `wstore convert`"
	}
	return "its folder has " + some(names)
}
