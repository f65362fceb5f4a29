package ingest

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// zipEntry is where an archive holds one of its files.
type zipEntry struct {
	archive      string
	offset       int64 // of the compressed bytes
	stored, size int64 // bytes, compressed and not
	crc          uint32
	method       uint16
}

// longestDirectory is the most bytes of an archive's directory: some 300,000 files.
const longestDirectory = 16 << 20

// expandZip returns the files of a zip archive as sources named archive/entry,
// sorted by these names, and those that it leaves out: names that begin with a
// dot, __MACOSX, and files of other kinds. A file that is alone is taken whatever
// its name; of several those that a folder's would be taken, or if there are
// none, those that end in .txt. There may be none at all. Nothing is unpacked to the disk, so that an
// entry's name is but a name.
func expandZip(archive string) (srcs []Source, skipped []string, err error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	unusable := func(err error, hint, reason string, args ...any) error {
		return &UnusableError{Path: archive, Reason: fmt.Sprintf(reason, args...), Hint: hint, Err: err}
	}
	r := &bounded{f, longestDirectory}
	z, err := zip.NewReader(r, info.Size())
	r.left = math.MaxInt64
	switch {
	case errors.Is(err, errDirectory):
		return nil, nil, unusable(nil, "unpack it first", "is a zip archive whose directory is longer than %d MiB", longestDirectory>>20)
	case err != nil:
		return nil, nil, unusable(err, "fetch it again, or unpack it first", "is a damaged zip archive")
	}

	var files []*zip.File
	name := func(f *zip.File) string { return strings.ReplaceAll(f.Name, `\`, "/") }
	for _, f := range z.File {
		switch n := name(f); {
		case strings.HasSuffix(n, "/"): // a folder; its files stand beside it
		case hidden(n), strings.HasPrefix(n, "__MACOSX/"):
			skipped = append(skipped, archive+"/"+n)
		default:
			files = append(files, f)
		}
	}
	if len(files) > 1 {
		wanted := func(f *zip.File) bool { return isText(name(f)) }
		if !slices.ContainsFunc(files, wanted) {
			wanted = func(f *zip.File) bool { return cutSuffixFold(name(f), ".txt") != name(f) }
		}
		files = slices.DeleteFunc(files, func(f *zip.File) bool {
			if !wanted(f) {
				skipped = append(skipped, archive+"/"+name(f))
				return true
			}
			return false
		})
	}
	for _, f := range files {
		e := &zipEntry{archive: archive, stored: int64(f.CompressedSize64), size: int64(f.UncompressedSize64), crc: f.CRC32, method: f.Method}
		src := Source{Path: archive + "/" + name(f), Size: e.stored, entry: e}
		fail := func(err error, hint, reason string) error {
			return &UnusableError{Path: src.Path, Reason: reason, Hint: hint, Err: err}
		}
		if f.Flags&1 != 0 {
			return nil, nil, fail(nil, "unpack it with its password first", "is encrypted")
		}
		if e.method != zip.Store && e.method != zip.Deflate && e.method != zstd.ZipMethodWinZip {
			return nil, nil, fail(nil, "unpack it first", fmt.Sprintf("is compressed in a way that is not supported (zip method %d)", e.method))
		}
		if e.offset, err = f.DataOffset(); err != nil || e.stored < 0 || e.size < 0 || e.offset > info.Size()-e.stored || e.method == zip.Store && e.stored != e.size {
			return nil, nil, fail(err, "fetch the archive again, or unpack it first", "is damaged: the archive does not hold all of it")
		}
		srcs = append(srcs, src)
	}
	// Files of an archive never share bytes, except in one that was made to unpack to many times what is possible.
	slices.SortFunc(srcs, func(a, b Source) int { return int(min(max(a.entry.offset-b.entry.offset, -1), 1)) })
	for i := 1; i < len(srcs); i++ {
		if before := srcs[i-1].entry; srcs[i].entry.offset < before.offset+before.stored || srcs[i].entry.offset == before.offset {
			return nil, nil, unusable(nil, "fetch it again, or unpack it first", "is a zip archive with files that overlap: %s", quoteAll([]string{path.Base(srcs[i-1].Path), path.Base(srcs[i].Path)}))
		}
	}
	slices.SortFunc(srcs, func(a, b Source) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(srcs); i++ {
		if srcs[i].Path == srcs[i-1].Path {
			return nil, nil, unusable(nil, "unpack it and name one of them", "is a zip archive with two files named %q", clip(srcs[i].Path[len(archive)+1:]))
		}
	}
	slices.Sort(skipped)
	return srcs, skipped, nil
}

// isZip reports whether a file begins as zip archives do.
func isZip(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = f.ReadAt(magic[:], 0)
	return err == nil && (string(magic[:]) == "PK\x03\x04" || string(magic[:]) == "PK\x05\x06")
}

var errDirectory = errors.New("too long")

// bounded is a file of which only so much is read.
type bounded struct {
	r    io.ReaderAt
	left int64
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errDirectory
	}
	return b.r.ReadAt(p, off)
}

// openEntry returns what an archive's entry holds.
func (in *input) openEntry(e *zipEntry) (r io.Reader, err error) {
	in.stored = io.NewSectionReader(in.file, e.offset, e.stored)
	switch e.method {
	case zip.Deflate:
		r = flate.NewReader(bufio.NewReaderSize(storedBytes{in}, 256<<10))
	case zstd.ZipMethodWinZip:
		r, err = in.unzstd(storedBytes{in})
	default:
		r = storedBytes{in}
	}
	return &checked{r: r, left: e.size, want: e.crc, sum: crc32.NewIEEE()}, err
}

// checked reads what must have a size and a checksum.
type checked struct {
	r    io.Reader
	left int64
	want uint32
	sum  hash.Hash32
}

var (
	errLonger   = errors.New("it holds more than its archive says")
	errChecksum = errors.New("its checksum is wrong")
)

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.sum.Write(b[:n])
	switch c.left -= int64(n); {
	case c.left < 0:
		return 0, errLonger
	case err == io.EOF && c.left > 0:
		return n, io.ErrUnexpectedEOF
	case err == io.EOF && c.sum.Sum32() != c.want:
		return n, errChecksum
	}
	return n, err
}
