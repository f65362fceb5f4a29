package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

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
	o := &reader.Options{Access: reader.Map}
	if !f32.Native || strconv.IntSize < 64 { // it can't be mapped, or may not fit
		o.Access = reader.Read
	}
	s, err := reader.Open(path, o)
	if err == nil {
		return s, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tell(err, "%s does not exist; %s", path, stores(filepath.Dir(path)))
	}
	if info, e := os.Stat(path); e == nil && !info.Mode().IsRegular() {
		return nil, tell(errUnusable, "%s", err)
	}
	return nil, err
}

// windows opens the store that the user named and answers the query of the flags, which is returned too. The caller
// closes the store of the windows.
func (a *app) windows(cmd *cobra.Command, path string, q *queryFlags) (*reader.Windows, reader.Query, error) {
	s, err := a.open(path)
	if err != nil {
		return nil, reader.Query{}, err
	}
	query, err := q.query(cmd, s)
	if err == nil {
		var w *reader.Windows
		if w, err = s.Windows(query); err == nil {
			return w, query, nil
		}
	}
	return nil, query, errors.Join(err, s.Close())
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
