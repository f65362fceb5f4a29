//go:build linux || darwin || freebsd || netbsd || openbsd

package mmapfile

import (
	"os"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

func advise(b []byte, a Advice) {
	_ = unix.Madvise(b, [...]int{unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL}[a])
}

func willNeed(b []byte) { _ = unix.Madvise(b, unix.MADV_WILLNEED) }
