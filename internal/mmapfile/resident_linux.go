package mmapfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// Resident reports whether the byte at off can be read without the disk. Where the file system can't say, it is false.
func Resident(f *os.File, off int64) bool {
	var b [1]byte
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Preadv2(int(fd), [][]byte{b[:]}, off, unix.RWF_NOWAIT)
		ok = err == nil && n == 1
	})
	return ok && err == nil
}

// populate is of Linux 5.14; older systems don't know it, and nothing happens.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_READ) }
