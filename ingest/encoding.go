package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

const hintEncoding = "name the text's encoding with --encoding, such as windows-1252, gbk or shift_jis"

// CheckEncoding reports a name that Options.Encoding can't have.
func CheckEncoding(name string) error {
	_, _, err := encodingOf(name)
	return err
}

// encodingOf finds an encoding by one of its names on the web, and gives the
// usual one. For Unicode, which decode handles itself, it is nil.
func encodingOf(name string) (encoding.Encoding, string, error) {
	e, err := htmlindex.Get(name)
	if err == nil {
		name, err = htmlindex.Name(e)
	}
	switch {
	case err != nil || name == "replacement" || name == "x-user-defined":
		return nil, "", fmt.Errorf("encoding %q is unknown; use a name such as utf-8, utf-16le, windows-1252, gbk or shift_jis", name)
	case strings.HasPrefix(name, "utf-"):
		return nil, name, nil
	}
	return e, name, nil
}

// decode turns text into UTF-8 and says what it was, if it was something else. A
// byte order mark decides, then the given name; text that has NUL as every second
// byte is UTF-16.
func decode(path string, r io.Reader, name string) (io.Reader, string, error) {
	head := make([]byte, 1024)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, "", err
	}
	head = head[:n]
	if err := checkMagic(path, head); err != nil {
		return nil, "", err
	}
	whole := func(mark int) io.Reader { return io.MultiReader(bytes.NewReader(head[mark:]), r) }
	from16 := func(mark int, order binary.ByteOrder) (io.Reader, string, error) {
		return transform.NewReader(whole(mark), &utf16Text{path: path, order: order, line: 1}), "UTF-16", nil
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return whole(3), "", nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return from16(2, binary.LittleEndian)
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return from16(2, binary.BigEndian)
	}
	if name != "" {
		e, name, err := encodingOf(name)
		switch {
		case err != nil:
			return nil, "", err
		case name == "utf-16le":
			return from16(0, binary.LittleEndian)
		case name == "utf-16be":
			return from16(0, binary.BigEndian)
		case e != nil:
			t := transform.Chain(e.NewDecoder(), &complete{path: path, encoding: name, line: 1})
			return transform.NewReader(whole(0), t), name, nil
		}
		return whole(0), "", nil
	}
	// Of ASCII in UTF-16 one byte of each pair is NUL; other letters may be among it.
	var nul [2]int
	for i, c := range head {
		if c == 0 {
			nul[i&1]++
		}
	}
	switch pairs := len(head) / 2; {
	case nul[0] == 0 && nul[1] > pairs/2:
		return from16(0, binary.LittleEndian)
	case nul[1] == 0 && nul[0] > pairs/2:
		return from16(0, binary.BigEndian)
	}
	return whole(0), "", nil
}

// checkMagic refuses files that are not text, by their first bytes.
func checkMagic(path string, b []byte) error {
	e := &UnusableError{Path: path, Hint: "convert it to CSV first"}
	has := func(magic string) bool { return bytes.HasPrefix(b, []byte(magic)) }
	switch {
	case has("\xff\xfe\x00\x00"), has("\x00\x00\xfe\xff"):
		e.Reason, e.Hint = "is text in UTF-32", "save it as UTF-8"
	case has("\xfd7zXZ\x00"), has("BZh"), has("7z\xbc\xaf\x27\x1c"), has("Rar!\x1a\x07"), has("\x1f\x9d"), has("\x04\x22\x4d\x18"):
		e.Reason, e.Hint = "is compressed in a way that is not supported", "decompress it, or compress it with gzip or zstd"
	case has("\x1f\x8b"), has("\x28\xb5\x2f\xfd"), has("PK\x03\x04"):
		e.Reason, e.Hint = "is compressed twice", "decompress it once first"
	case has("PAR1"):
		e.Reason = "is a Parquet file"
	case has(`{"`), has("{\n"), has("[{"), has("[\n"):
		e.Reason, e.Hint = "is JSON, not a table", "write it as CSV or Parquet first"
	case has("\x89HDF"):
		e.Reason = "is an HDF5 file"
	case has("\xd0\xcf\x11\xe0"):
		e.Reason, e.Hint = "is an old Office document", "export it as CSV"
	case has("<!DOCTYPE"), has("<!doctype"), has("<html"), has("<?xml"):
		e.Reason, e.Hint = "is a web page or XML, not a table", "look into it: servers send such a page instead of the file"
	default:
		return nil
	}
	return e
}

// utf16Text turns UTF-16 into UTF-8, and refuses halves of characters.
type utf16Text struct {
	path  string
	order binary.ByteOrder
	line  int64 // 1-based
}

func (u *utf16Text) Reset() {}

func (u *utf16Text) Transform(dst, src []byte, atEOF bool) (to, from int, err error) {
	for from < len(src) {
		rest := src[from:]
		if len(rest) < 2 {
			if !atEOF {
				return to, from, transform.ErrShortSrc
			}
			return to, from, &UnusableError{Path: u.path, Reason: "its UTF-16 text is cut short", Hint: "fetch it again"}
		}
		c, n := rune(u.order.Uint16(rest)), 2
		if utf16.IsSurrogate(c) {
			if len(rest) < 4 && !atEOF {
				return to, from, transform.ErrShortSrc
			}
			second := rune(0)
			if len(rest) >= 4 {
				second = rune(u.order.Uint16(rest[2:]))
			}
			if c, n = utf16.DecodeRune(c, second), 4; c == utf8.RuneError {
				return to, from, &UnusableError{Path: u.path, Reason: fmt.Sprintf("line %d holds half a character of UTF-16", u.line), Hint: "save it as UTF-8"}
			}
		}
		if to+utf8.UTFMax > len(dst) {
			return to, from, transform.ErrShortDst
		}
		if c == '\n' {
			u.line++
		}
		to += utf8.EncodeRune(dst[to:], c)
		from += n
	}
	return to, from, nil
}

// complete passes text on in which nothing was replaced because it could not be
// decoded.
type complete struct {
	path, encoding string
	line           int64 // 1-based
}

func (c *complete) Reset() {}

func (c *complete) Transform(dst, src []byte, atEOF bool) (int, int, error) {
	if at := bytes.Index(src, []byte("\ufffd")); at >= 0 {
		line := c.line + int64(bytes.Count(src[:at], []byte("\n")))
		return 0, 0, &UnusableError{Path: c.path, Reason: fmt.Sprintf("line %d is not text in %s", line, c.encoding), Hint: "name another encoding with --encoding"}
	}
	n, err := len(src), error(nil)
	for k := 1; k <= 2 && k <= n && !atEOF; k++ { // the mark may begin at the end
		if bytes.HasPrefix([]byte("\ufffd"), src[len(src)-k:]) {
			n, err = len(src)-k, transform.ErrShortSrc
		}
	}
	if n > len(dst) {
		n, err = len(dst), transform.ErrShortDst
	}
	copy(dst, src[:n])
	c.line += int64(bytes.Count(src[:n], []byte("\n")))
	return n, n, err
}
