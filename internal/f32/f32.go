// Package f32 views bytes as numbers without copying them. It is the only package that uses unsafe.
//
// A view needs a little-endian machine and bytes that are aligned for the number; where either is missing the functions
// return false, and the caller decodes a copy with [Decode] or [DecodeInt64] instead. A view shares the bytes' memory
// and lifetime, and its capacity is its length.
package f32

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Native reports whether this machine stores numbers as the format does.
var Native = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// View returns b as float32 numbers, without copying. False: b has a rest, is misaligned, or the machine is big-endian.
func View(b []byte) ([]float32, bool) { return view[float32](b) }

// ViewInt64 returns b as int64 numbers, under the same conditions.
func ViewInt64(b []byte) ([]int64, bool) { return view[int64](b) }

// Bytes returns the memory of s as bytes in the machine's order, without copying.
func Bytes[T float32 | int64](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

func view[T float32 | int64](b []byte) ([]T, bool) {
	size := unsafe.Sizeof(*new(T))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if !Native || uintptr(len(b))%size != 0 || uintptr(p)%size != 0 {
		return nil, false
	}
	n := len(b) / int(size)
	return unsafe.Slice((*T)(p), n)[:n:n], true
}

// Decode decodes little-endian float32 numbers into dst, of which there must be len(b)/4. Their bits are kept.
func Decode(dst []float32, b []byte) {
	if Native {
		copy(Bytes(dst), b)
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// DecodeInt64 decodes little-endian int64 numbers into dst, of which there must be len(b)/8.
func DecodeInt64(dst []int64, b []byte) {
	if Native {
		copy(Bytes(dst), b)
		return
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// Append appends the little-endian bytes of s.
func Append(dst []byte, s []float32) []byte {
	if Native {
		return append(dst, Bytes(s)...)
	}
	for _, v := range s {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// AppendInt64 appends the little-endian bytes of s.
func AppendInt64(dst []byte, s []int64) []byte {
	if Native {
		return append(dst, Bytes(s)...)
	}
	for _, v := range s {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

// Address returns where b's memory starts, to tell whether a fault lies in it.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// AlignedBytes returns n zero bytes that can be viewed as numbers.
func AlignedBytes(n int) []byte {
	return Bytes(make([]int64, (n+7)/8))[:n:n]
}
