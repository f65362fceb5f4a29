//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package fsys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lock does nothing: here the number of the process in a file's name says whether it is in use.
func lock(string) (held *os.File, ok bool) { return nil, true }

// abandoned reports whether the process that made a temporary file has ended.
func abandoned(name string) (held *os.File, yes bool) {
	parts := strings.Split(filepath.Base(name), ".") // …, process-random, tmp
	process, _, _ := strings.Cut(parts[len(parts)-2], "-")
	pid, err := strconv.Atoi(process)
	if err != nil || pid == os.Getpid() {
		return nil, false
	}
	p, err := os.FindProcess(pid) // on Windows it opens the process
	if err != nil {
		return nil, true
	}
	_ = p.Release()
	return nil, false
}
