package format

// The constants of the format, SPEC sections 2, 3, 4 and 8.
const (
	Version        = 1
	Magic          = "\x89WST\r\n\x1a\n"
	SlotSize       = 512  // bytes of a commit slot, its checksum last
	SlotStride     = 4096 // slot 1 starts here
	DataStart      = 8192 // the first byte behind the slots
	CatalogHead    = 8    // bytes of the catalog before its entries
	CatalogEntry   = 40   // bytes of a catalog entry
	ChunkSize      = 65536
	SectionAlign   = 8
	DigestSize     = 32
	MissingBits    = 0x7fc00000         // the only float32 that stands for a missing cell
	NoTime         = -1 << 63           // the int64 that stands for no label end
	NoNumber       = 0x7ff8000000000000 // the bits of the float64 that stands for no number of a ticker
	IncompatOpen   = 1 << 0             // the file may be appended to; refused until that exists
	KnownIncompat  = 0                  // incompat bits that this package implements
	digestPreamble = "wstore-digest-1\n"
)

// The limits of the format, SPEC section 13.
const (
	MinAlignLog2  = 6
	MaxAlignLog2  = 16
	MaxGroups     = 1024
	MaxColumns    = 65535
	MaxBreakSets  = 64
	MaxTickers    = 1 << 24
	MaxName       = 255 // bytes of a ticker, group, column, break set or attribute name
	MaxAttributes = 65535
	MaxTexts      = 1 << 24 // categories of a column, texts of an attribute
	MaxText       = 65535   // bytes of one
	MaxSections   = 65536
	MaxUvarint    = 9         // bytes
	MaxSpan       = 1<<31 - 1 // lookback, stride, target length
	MaxHorizons   = 4096
)
