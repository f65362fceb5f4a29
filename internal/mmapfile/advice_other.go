//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package mmapfile

const pageSize = 4096

func advise([]byte, Advice) {}

func willNeed([]byte) {}
