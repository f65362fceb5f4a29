//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package fsys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock marks a file as in use until the returned one is closed, or its process ends in any way. ok is false if another
// holds it; a file system without locks marks nothing.
func lock(name string) (held *os.File, ok bool) {
	f, err := os.OpenFile(name, os.O_RDWR, 0) // some network file systems lock only what may be written
	if err != nil {
		return nil, false
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		return nil, false
	}
	if err != nil {
		_ = f.Close()
		return nil, true
	}
	return f, true
}

// abandoned reports whether nobody uses a temporary file. The lock keeps it so until it is closed.
func abandoned(name string) (held *os.File, yes bool) {
	held, _ = lock(name)
	return held, held != nil
}
