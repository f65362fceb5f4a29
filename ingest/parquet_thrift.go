package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// thrift reads Thrift's compact protocol, in which Parquet keeps all that is not
// cells. What lies outside the bytes panics.
type thrift struct {
	b  []byte
	at int
}

// The types of its values.
const (
	thriftTrue = iota + 1
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
	thriftUUID
)

const deepestThrift = 32

var errThrift = errors.New("its metadata is damaged")

func (t *thrift) byte() byte {
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.b[t.at:])
	if n <= 0 {
		panic(errThrift)
	}
	t.at += n
	return v
}

func (t *thrift) varint() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// skipBytes goes over n bytes.
func (t *thrift) skipBytes(n uint64) {
	if n > uint64(len(t.b)-t.at) {
		panic(errThrift)
	}
	t.at += int(n)
}

// fields calls use for each field of a struct, which must read its value.
func (t *thrift) fields(use func(id int16, kind byte)) {
	for id := int16(0); ; {
		head := t.byte()
		if head == 0 {
			return
		}
		if head>>4 > 0 {
			id += int16(head >> 4)
		} else {
			id = int16(t.varint())
		}
		use(id, head&15)
	}
}

// list reads the head of a list. Each element takes a byte or more.
func (t *thrift) list() (n int, kind byte) {
	head := t.byte()
	size := uint64(head >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	if size > uint64(len(t.b)-t.at) {
		panic(errThrift)
	}
	return int(size), head & 15
}

// skip goes over a value, checking that it can be read without more memory than a
// few times its size.
func (t *thrift) skip(kind byte, depth int) {
	if depth > deepestThrift {
		panic(errThrift)
	}
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.skipBytes(8)
	case thriftUUID:
		t.skipBytes(16)
	case thriftBinary:
		t.skipBytes(t.uvarint())
	case thriftList, thriftSet:
		n, kind := t.list()
		for range n {
			t.element(kind, depth+1)
		}
	case thriftMap:
		n := t.uvarint()
		if n > uint64(len(t.b)-t.at) {
			panic(errThrift)
		}
		if n > 0 {
			kinds := t.byte()
			for range n {
				t.element(kinds>>4, depth+1)
				t.element(kinds&15, depth+1)
			}
		}
	case thriftStruct:
		t.fields(func(_ int16, kind byte) { t.skip(kind, depth+1) })
	default:
		panic(errThrift)
	}
}

// element goes over a value of a list, where a bool has a byte of its own.
func (t *thrift) element(kind byte, depth int) {
	if kind == thriftTrue || kind == thriftFalse {
		t.byte()
		return
	}
	t.skip(kind, depth)
}

// checkFooter looks whether the metadata at a file's end can be read: whether all
// it counts is there, and its schema is a tree that is not too deep.
func checkFooter(b []byte) error {
	t := &thrift{b: b}
	schema := false
	var err error
	t.fields(func(id int16, kind byte) {
		if id != 2 || kind != thriftList || schema {
			t.skip(kind, 0)
			return
		}
		schema = true
		n, kind := t.list()
		if kind != thriftStruct {
			panic(errThrift)
		}
		var open []int64 // children that groups still want
		for i := range n {
			children := int64(0)
			t.fields(func(id int16, kind byte) {
				if id == 5 && kind == thriftI32 {
					children = t.varint()
					return
				}
				t.skip(kind, 1)
			})
			if i > 0 {
				for len(open) > 0 && open[len(open)-1] == 0 {
					open = open[:len(open)-1]
				}
				if len(open) == 0 {
					err = errors.New("its schema is no tree")
					return
				}
				open[len(open)-1]--
			}
			if children < 0 || children > int64(n) {
				err = fmt.Errorf("its schema has a group of %d columns", children)
				return
			}
			if children > 0 {
				open = append(open, children)
			}
			if len(open) > deepestThrift {
				err = errors.New("its schema is nested too deep")
				return
			}
		}
		for _, left := range open {
			if left > 0 {
				err = errors.New("its schema lacks columns")
			}
		}
	})
	if err == nil && !schema {
		err = errors.New("it has no schema")
	}
	return err
}

// pageHeader is what stands before a page.
type pageHeader struct {
	kind, size, stored int64 // size is that of the page decompressed, stored as it is in the file
	crc                uint32
	checked            bool // there is a crc
	values, encoding   int64
	defLevels          int64 // encoding of the levels
	repLevels          int64
	nulls, rows        int64 // of version 2, as are the rest
	defBytes, repBytes int64
	compressed         bool
}

// The kinds of page.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

// readPageHeader reads a header from the beginning of b and returns its length.
func readPageHeader(b []byte) (h pageHeader, length int) {
	t := &thrift{b: b}
	h.compressed = true
	ints := func(into ...*int64) {
		t.fields(func(id int16, kind byte) {
			if kind == thriftI32 && id >= 1 && int(id) <= len(into) {
				*into[id-1] = t.varint()
				return
			}
			if id == 7 && len(into) == 6 {
				h.compressed = kind == thriftTrue
			}
			t.skip(kind, 1)
		})
	}
	t.fields(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = t.varint()
		case id == 2 && kind == thriftI32:
			h.size = t.varint()
		case id == 3 && kind == thriftI32:
			h.stored = t.varint()
		case id == 4 && kind == thriftI32:
			h.crc, h.checked = uint32(t.varint()), true
		case id == 5 && kind == thriftStruct:
			ints(&h.values, &h.encoding, &h.defLevels, &h.repLevels)
		case id == 7 && kind == thriftStruct:
			ints(&h.values, &h.encoding)
		case id == 8 && kind == thriftStruct:
			ints(&h.values, &h.nulls, &h.rows, &h.encoding, &h.defBytes, &h.repBytes)
		default:
			t.skip(kind, 0)
		}
	})
	return h, t.at
}
