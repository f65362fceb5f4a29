// Package format turns the bytes of a wstore file into structures and back. It is pure: it does no I/O, uses no unsafe
// code and knows no operating system. The specification, spec/SPEC.md, is its authority; each function names the
// section that it implements.
//
//	0     slot 0 ─┐                    512 bytes, then zeros
//	4096  slot 1  │                    512 bytes, then zeros
//	8192  calendars: i64 × entries     each at a multiple of the alignment
//	      blocks: f32 × rows × width   group by group, in ticker order
//	      sections BLKS CALS CATS …    each at a multiple of 8
//	      catalog ◄┘                   one entry a section; the end of a sealed file
//
// Decoding never panics, whatever the bytes, and allocates at most a small multiple of the bytes that it is given. What
// is wrong is reported as a [CorruptError], which matches both [ErrCorrupt] and its [Code], or as an [UnsupportedError].
//
// Decoded structures own their memory, except where a field's comment says that it refers to the input.
package format
