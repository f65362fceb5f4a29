package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	codecs "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	mostPage       = 256 << 20 // bytes of a page, decompressed or not
	mostPageHeader = 16 << 20
	mostPooled     = 4 << 20 // bytes of a buffer that is kept for another page
	mostDelta      = 1 << 16 // values in a block of DELTA_BINARY_PACKED; writers use 128
	sliceBytes     = 24      // of a []byte without what it points to
)

// pageReader reads the pages of a column. It takes the place of the package's
// own, which believes what a page says of its size.
type pageReader struct {
	file.PageReader // the methods that aren't used

	f        *os.File
	at, end  int64 // of the pages that are left
	values   int64 // left, of those that the column should have
	codec    codecs.Compression
	levels   bool // cells may be missing
	fixed    int  // bytes of a cell; 0 where they vary
	held     *groupBytes
	counted  int64 // of the page, in held
	dict     bool
	page     file.Page
	size     int // of the page
	encoding parquet.Encoding
	err      error

	head []byte
	buf  []byte // the page
}

// pageBuffers are those of pages that are not needed any more.
var pageBuffers sync.Pool

// behindPage is room behind a page's bytes: the package takes pointers to numbers
// there, though it reads none, which the checks of race builds don't allow outside
// of the page's memory.
const behindPage = 16

// takeBuffer returns a slice of n bytes, of any content.
func takeBuffer(n int) []byte {
	if b, ok := pageBuffers.Get().(*[]byte); ok && cap(*b) >= n+behindPage {
		return (*b)[:n]
	}
	return make([]byte, n+behindPage)[:n]
}

func giveBuffer(b []byte) {
	if cap(b) > 0 && cap(b) <= mostPooled {
		pageBuffers.Put(&b)
	}
}

func (r *pageReader) close() {
	giveBuffer(r.buf)
	r.buf, r.page, r.values = nil, nil, 0
}

func (r *pageReader) Page() file.Page { return r.page }
func (r *pageReader) Err() error      { return r.err }
func (r *pageReader) Close() error    { return nil }

// GetDictionaryPage is asked for where data come before their dictionary.
func (r *pageReader) GetDictionaryPage() (*file.DictionaryPage, error) {
	return nil, errors.New("a column has no dictionary, or it comes too late")
}

// Next reads the next page with values.
func (r *pageReader) Next() bool {
	r.page = nil
	for r.err == nil && r.page == nil && r.values > 0 && r.at < r.end {
		r.err = r.next()
	}
	return r.page != nil && r.err == nil
}

func (r *pageReader) next() error {
	h, err := r.header()
	if err != nil {
		return err
	}
	if h.stored < 0 || h.stored > r.end-r.at || h.size < 0 {
		return fmt.Errorf("a page claims %d bytes, and %d when decompressed", h.stored, h.size)
	}
	if h.size > mostPage || h.stored > mostPage {
		return tooMuch("write it with smaller pages", "a page has more than %d MiB", mostPage>>20)
	}
	at := r.at
	r.at += h.stored
	if h.kind != dataPage && h.kind != dataPageV2 && h.kind != dictionaryPage {
		return nil
	}
	if h.values < 0 || h.kind != dictionaryPage && h.values > r.values {
		return fmt.Errorf("a page claims %d values, where %d are left", h.values, r.values)
	}
	if h.kind != dictionaryPage && h.values == 0 {
		return nil
	}
	plain := int64(0) // bytes of the page that are never compressed
	if h.kind == dataPageV2 {
		if h.defBytes < 0 || h.repBytes < 0 || h.defBytes+h.repBytes > min(h.stored, h.size) {
			return errors.New("a page is shorter than the levels that it claims")
		}
		plain = h.defBytes + h.repBytes
	}
	if err := r.count(&h); err != nil {
		return err
	}
	stored := takeBuffer(int(h.stored))
	var out []byte
	if _, err := r.f.ReadAt(stored, at); err != nil {
		return cutShort(err)
	}
	if h.checked && crc32.ChecksumIEEE(stored) != h.crc {
		return errors.New("a page does not have its checksum")
	}
	if !h.compressed || r.codec == codecs.Codecs.Uncompressed {
		if h.stored != h.size {
			return fmt.Errorf("a page that is not compressed has %d bytes and claims %d", h.stored, h.size)
		}
		out = stored
	} else {
		// The page before it is not needed any more; a dictionary stays.
		if h.kind != dictionaryPage && cap(r.buf) >= int(h.size)+behindPage {
			out = r.buf[:h.size]
		} else {
			out = takeBuffer(int(h.size))
		}
		copy(out, stored[:plain])
		if err := decompress(r.codec, out[plain:], stored[plain:]); err != nil {
			return err
		}
		giveBuffer(stored)
	}
	r.size, r.encoding = len(out), parquet.Encoding(h.encoding)
	page := memory.NewBufferBytes(out)
	if h.kind == dictionaryPage {
		if r.dict {
			return errors.New("a column has two dictionaries")
		}
		r.dict = true
		width := max(r.fixed, 1)
		if r.fixed == 0 {
			width = 4
		}
		if h.values > h.size/int64(width) {
			return fmt.Errorf("a dictionary of %d bytes claims %d values", h.size, h.values)
		}
		r.page = file.NewDictionaryPage(page, int32(h.values), parquet.Encoding(h.encoding))
		return nil
	}
	if cap(r.buf) > 0 && (cap(out) == 0 || &r.buf[:1][0] != &out[:1][0]) {
		giveBuffer(r.buf)
	}
	r.buf = out
	r.values -= h.values
	if h.kind == dataPageV2 {
		if err := r.checkDelta(out[plain:]); err != nil {
			return err
		}
		r.page = file.NewDataPageV2(page, int32(h.values), int32(h.nulls), int32(h.rows), parquet.Encoding(h.encoding), int32(h.defBytes), int32(h.repBytes), int32(h.size), false)
		return nil
	}
	cells := out
	if r.levels && h.defLevels == int64(parquet.Encodings.RLE) {
		if n := uint64(binary.LittleEndian.Uint32(out)); n+4 > uint64(len(out)) {
			return errors.New("a page is shorter than the levels that it claims")
		} else {
			cells = out[4+n:]
		}
	} else if r.levels {
		cells = out[min((h.values+7)/8, int64(len(out))):]
	}
	if err := r.checkDelta(cells); err != nil {
		return err
	}
	r.page = file.NewDataPageV1(page, int32(h.values), parquet.Encoding(h.encoding), parquet.Encoding(h.defLevels), parquet.Encoding(h.repLevels), int32(h.size))
	return nil
}

// count counts what a page is going to take: its bytes, and what the package makes
// of it at once. It takes the place of the page before, but for a dictionary.
func (r *pageReader) count(h *pageHeader) error {
	n := h.size
	switch encoding := parquet.Encoding(h.encoding); {
	case h.kind == dictionaryPage && r.fixed == 0:
		return r.held.add(n + sliceBytes*min(h.values, h.size/4))
	case h.kind == dictionaryPage:
		return r.held.add(2 * n)
	case encoding == parquet.Encodings.DeltaLengthByteArray || encoding == parquet.Encodings.DeltaByteArray:
		n += 8 * h.values // two lengths
	}
	n, r.counted = n-r.counted, n
	return r.held.add(n)
}

// header reads the next page's header and goes on behind it.
func (r *pageReader) header() (h pageHeader, err error) {
	for want := int64(256); ; want *= 16 {
		n := min(want, r.end-r.at)
		r.head = slices.Grow(r.head[:0], int(n))[:n]
		if _, err := r.f.ReadAt(r.head, r.at); err != nil {
			return h, cutShort(err)
		}
		h, length, ok := tryPageHeader(r.head)
		if ok {
			r.at += int64(length)
			return h, nil
		}
		if n == r.end-r.at || want > mostPageHeader {
			return h, errors.New("the header of a page is damaged")
		}
	}
}

// tryPageHeader reads a header, if all of it is in b.
func tryPageHeader(b []byte) (h pageHeader, length int, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	h, length = readPageHeader(b)
	return h, length, true
}

// checkDelta looks at the blocks of integers with which a page begins, if its
// encoding has such: the package makes room for a block before it has seen it.
func (r *pageReader) checkDelta(b []byte) error {
	lists := 0
	switch r.encoding {
	case parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray:
		lists = 1
	case parquet.Encodings.DeltaByteArray:
		lists = 2
	}
	for range lists {
		n, err := deltaLength(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

var errDelta = errors.New("a page of differences is damaged")

// deltaLength is how many bytes a DELTA_BINARY_PACKED list takes.
func deltaLength(b []byte) (int, error) {
	at := 0
	next := func() uint64 {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			at = -1
			panic(errDelta)
		}
		at += n
		return v
	}
	block, minis, total := next(), next(), next()
	next() // the first value
	if block == 0 || block > mostDelta || minis == 0 || minis > block || block%minis != 0 {
		return 0, errDelta
	}
	for left := int64(min(total, 1<<40)) - 1; left > 0; {
		next() // the least difference
		if uint64(len(b)-at) < minis {
			return 0, errDelta
		}
		widths := b[at : at+int(minis)]
		at += int(minis)
		for _, w := range widths {
			if left <= 0 {
				break // what follows has no values
			}
			n := int(block/minis) / 8 * int(w)
			if w > 64 || n > len(b)-at {
				return 0, errDelta
			}
			at += n
			left -= int64(block / minis)
		}
	}
	return at, nil
}

// zstdPages decompresses pages; it starts no goroutine.
var zstdPages = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(mostPage))
})

// decompress fills out with what a page holds.
func decompress(codec codecs.Compression, out, stored []byte) error {
	n := 0
	var err error
	switch codec {
	case codecs.Codecs.Snappy:
		if n, err = snappy.DecodedLen(stored); err == nil && n == len(out) {
			_, err = snappy.Decode(out, stored)
		}
	case codecs.Codecs.Zstd:
		var z *zstd.Decoder
		if z, err = zstdPages(); err == nil {
			var all []byte
			all, err = z.DecodeAll(stored, out[:0:len(out)])
			n = len(all)
		}
	case codecs.Codecs.Gzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(stored)); err == nil {
			n, err = fill(z, out)
		}
	case codecs.Codecs.Brotli:
		n, err = fill(brotli.NewReader(bytes.NewReader(stored)), out)
	case codecs.Codecs.Lz4Raw:
		n, err = lz4.UncompressBlock(stored, out)
	case codecs.Codecs.Lz4:
		n, err = hadoopLZ4(out, stored)
	default:
		return tooMuch("write it with snappy or zstd", "it is compressed with %s, which is not supported", codec)
	}
	if err == nil && n != len(out) {
		err = fmt.Errorf("it has %d bytes and claims %d", n, len(out))
	}
	if err != nil {
		return fmt.Errorf("a page cannot be decompressed: %w", err)
	}
	return nil
}

// fill reads as many bytes as there should be, and looks whether there are more.
func fill(r io.Reader, out []byte) (int, error) {
	n, err := io.ReadFull(r, out)
	if err != nil {
		return n, cutShort(err)
	}
	var more [1]byte
	if _, err := io.ReadFull(r, more[:]); err != io.EOF {
		return n, errors.New("it has more bytes than it claims")
	}
	return n, nil
}

// hadoopLZ4 decompresses the deprecated codec LZ4: blocks, each behind its two
// lengths, big-endian, or one block alone.
func hadoopLZ4(out, stored []byte) (int, error) {
	n, s := 0, stored
	for len(s) >= 8 {
		size, length := uint64(binary.BigEndian.Uint32(s)), uint64(binary.BigEndian.Uint32(s[4:]))
		if length > uint64(len(s)-8) || size > uint64(len(out)-n) {
			break
		}
		m, err := lz4.UncompressBlock(s[8:8+length], out[n:n+int(size)])
		if err != nil || uint64(m) != size {
			break
		}
		n, s = n+m, s[8+length:]
	}
	if len(s) == 0 && n == len(out) {
		return n, nil
	}
	return lz4.UncompressBlock(stored, out)
}
