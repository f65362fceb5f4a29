package ingest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"pgregory.net/rapid"
)

// opened is the text of a file with such content.
func opened(t testing.TB, content, encoding string) (string, string, error) {
	path := filepath.Join(t.TempDir(), "a.csv")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	in, err := open(Source{Path: path}, encoding, nil)
	if err != nil {
		return "", "", err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	return string(text), in.encoding, err
}

func in16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, c := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, c)
	}
	return string(b)
}

func TestOpenText(t *testing.T) {
	text := "date,Ä,日経,👩\n" + strings.Repeat("2013-02-08,1,2,3\n", 1000)
	cp1252, err := charmap.Windows1252.NewEncoder().String("date,Ä,€\n1,2,3\n")
	require.NoError(t, err)
	gbk, err := simplifiedchinese.GBK.NewEncoder().String("日期,开盘\n1,2\n")
	require.NoError(t, err)
	for name, c := range map[string]struct{ content, encoding, want, says string }{
		"plain":            {text, "", text, ""},
		"empty":            {"", "", "", ""},
		"mark":             {"\xef\xbb\xbf" + text, "", text, ""},
		"mark and a name":  {"\xef\xbb\xbf" + text, "windows-1252", text, ""},
		"little":           {"\xff\xfe" + in16(binary.LittleEndian, text), "", text, "UTF-16"},
		"big":              {"\xfe\xff" + in16(binary.BigEndian, text), "", text, "UTF-16"},
		"little, unmarked": {in16(binary.LittleEndian, text), "", text, "UTF-16"},
		"big, unmarked":    {in16(binary.BigEndian, text), "", text, "UTF-16"},
		"named 16":         {in16(binary.LittleEndian, "日経"), "utf-16le", "日経", "UTF-16"},
		"named 16 big":     {in16(binary.BigEndian, "日経"), "UTF-16BE", "日経", "UTF-16"},
		"named 8":          {text, "utf8", text, ""},
		"Windows":          {cp1252, "cp1252", "date,Ä,€\n1,2,3\n", "windows-1252"},
		"Chinese":          {gbk, "gb2312", "日期,开盘\n1,2\n", "gbk"},
	} {
		got, says, err := opened(t, c.content, c.encoding)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.says, says, name)
	}
}

func TestOpenRefuses(t *testing.T) {
	mid := "x\n" + strings.Repeat("abc\n", 3000)
	for content, want := range map[string][2]string{
		"\xff\xfe\x00\x00d\x00\x00\x00": {"", "is text in UTF-32"},
		"\x00\x00\xfe\xff":              {"", "is text in UTF-32"},
		"\xfd7zXZ\x00":                  {"", "is compressed in a way that is not supported"},
		"\xd0\xcf\x11\xe0":              {"", "an old Office document; export it as CSV"},
		"<!DOCTYPE html>":               {"", "is a web page"},
		`{"date": "2020-01-02"}`:        {"", "is JSON, not a table; write it as CSV or Parquet first"},
		"[\n  {":                        {"", "is JSON"},
		"\xff\xfea\x00b":                {"", "its UTF-16 text is cut short"},
		"\xff\xfea\x00\x00\xd8a\x00":    {"", "line 1 holds half a character of UTF-16"},
		"\xff\xfea\x00\n\x00\x00\xd8":   {"", "line 2 holds half a character of UTF-16"},
		"\xfe\xff\xdc\x00\x00a":         {"", "half a character"},
		mid + "\x81\x00":                {"gbk", "line 3002 is not text in gbk; name another encoding with --encoding"},
		"a":                             {"klingon", `encoding "klingon" is unknown`},
	} {
		_, _, err := opened(t, content, want[0])
		require.ErrorContains(t, err, want[1])
	}
	require.ErrorContains(t, CheckEncoding("replacement"), "unknown")
	require.NoError(t, CheckEncoding("latin1"))
}

// A character that could not be decoded is found wherever the pieces of the text end.
func TestOpenReplaced(t *testing.T) {
	for n := range 40 {
		_, _, err := opened(t, strings.Repeat("a", 4096-20+n)+"\xff\xff\nb", "gbk")
		require.ErrorContains(t, err, "line 1 is not text in gbk", n)
	}
}

// gzip and zstd streams come out whole, whatever their pieces, or as an error.
func TestOpenStreams(t *testing.T) {
	text := strings.Repeat("2013-02-08,1,2\n", 20_000)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	frames := string(z.EncodeAll([]byte(text[:1234]), nil)) + "\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + string(z.EncodeAll([]byte(text[1234:]), nil))
	members := string(compress(t, text[:1234], "", text[1234:]))
	for name, stream := range map[string]string{
		"gzip stream": members, "zstd stream": frames,
	} {
		got, _, err := opened(t, stream, "")
		require.NoError(t, err, name)
		require.Equal(t, text, got, name)
		for _, cut := range []int{len(stream) - 1, len(stream) / 2, 20} {
			_, _, err = opened(t, stream[:cut], "")
			require.ErrorContains(t, err, "its "+name+" is cut short; fetch or compress it again", cut)
		}
		flipped := []byte(stream)
		flipped[len(stream)-3] ^= 1
		_, _, err = opened(t, string(flipped), "")
		var unusable *UnusableError
		require.ErrorAs(t, err, &unusable, name)
		require.ErrorContains(t, err, "its "+name+" is damaged", name)
		_, _, err = opened(t, stream+"more", "")
		require.ErrorContains(t, err, "its "+name+" is damaged", name)
	}
	got, _, err := opened(t, "\x50\x2a\x4d\x18\x00\x00\x00\x00"+frames, "")
	require.NoError(t, err)
	require.Equal(t, text, got)
	got, _, err = opened(t, members+strings.Repeat("\x00", 5000), "")
	require.NoError(t, err, "padding")
	require.Equal(t, text, got)
	_, _, err = opened(t, members+"\x00\x00\x1f", "")
	require.ErrorContains(t, err, "something that is no gzip follows it")
	_, _, err = opened(t, string(compress(t, members)), "")
	require.ErrorContains(t, err, "is compressed twice; decompress it once first")

	// A window of 1 GiB, as `zstd --long=30` makes it.
	_, _, err = opened(t, "\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", "")
	require.ErrorContains(t, err, "its zstd stream needs more than 128 MiB of memory; decompress it first")
}

// archive writes a zip archive of name, text, name, text, ...
func archive(t testing.TB, path string, files ...string) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor())
	for i := 0; i < len(files); i += 2 {
		method := []uint16{zip.Deflate, zip.Store, zstd.ZipMethodWinZip}[i/2%3]
		f, err := w.CreateHeader(&zip.FileHeader{Name: files[i], Method: method})
		require.NoError(t, err)
		_, err = f.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
}

func textOf(t testing.TB, src Source) (string, error) {
	in, err := open(src, "", nil)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	return string(text), err
}

func TestZip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "panel.zip")
	long := strings.Repeat("2013-02-08,1,2\n", 100_000)
	archive(t, path, "b/BRK.B.csv", long, "A.CSV", "a", "日経.csv", long, "__MACOSX/._A.CSV", "x", ".DS_Store", "x", "readme.txt", "x", `win\C.csv`, "c", "../up.csv", "up")
	srcs, skipped, err := Sources([]string{path})
	require.NoError(t, err)
	got := map[string]string{}
	for _, s := range srcs {
		require.Equal(t, path, s.File())
		text, err := textOf(t, s)
		require.NoError(t, err, s.Path)
		got[strings.TrimPrefix(s.Path, path+"/")] = text
	}
	require.Equal(t, map[string]string{"b/BRK.B.csv": long, "A.CSV": "a", "日経.csv": long, "win/C.csv": "c", "../up.csv": "up"}, got)
	require.Equal(t, []string{path + "/.DS_Store", path + "/__MACOSX/._A.CSV", path + "/readme.txt"}, skipped)
	require.Equal(t, "BRK.B", Source{Path: path + "/b/BRK.B.csv"}.Name())

	archive(t, path, "data", "alone")
	srcs, _, err = Sources([]string{path})
	require.NoError(t, err)
	text, err := textOf(t, srcs[0])
	require.NoError(t, err)
	require.Equal(t, "alone", text)

	archive(t, path, "us/a.us.txt", "1", "us/b.us.txt", "2", "us/", "")
	srcs, _, err = Sources([]string{path})
	require.NoError(t, err)
	require.Equal(t, []string{"a.us.txt", "b.us.txt"}, bases(srcs))

	archive(t, path, "a.md", "", "b.md", "")
	_, _, err = Sources([]string{path})
	require.ErrorContains(t, err, "is a zip archive without a .csv")

	archive(t, path, "a.csv", string(compress(t, "x")))
	srcs, _, err = Sources([]string{path})
	require.NoError(t, err)
	_, err = textOf(t, srcs[0])
	require.ErrorContains(t, err, "a.csv: is compressed twice")

	archive(t, path, "a.csv", "1", "a.csv", "2")
	_, _, err = Sources([]string{path})
	require.ErrorContains(t, err, `two files named "a.csv"`)
}

func TestZipRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.zip")
	long := strings.Repeat("2013-02-08,1,2\n", 1000)
	archive(t, path, "a.csv", long, "b.csv", long)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	directory := bytes.Index(whole, []byte("PK\x01\x02"))
	second := 4 + bytes.Index(whole[directory+4:], []byte("PK\x01\x02")) // from there
	try := func(change func(b []byte) []byte) error {
		require.NoError(t, os.WriteFile(path, change(bytes.Clone(whole)), 0o600))
		srcs, _, err := Sources([]string{path})
		for _, s := range srcs {
			if err == nil {
				_, err = textOf(t, s)
			}
		}
		return err
	}
	set := func(at int, v ...byte) func(b []byte) []byte {
		return func(b []byte) []byte { copy(b[directory+at:], v); return b }
	}
	for want, change := range map[string]func(b []byte) []byte{
		"is a damaged zip archive":              func(b []byte) []byte { return b[:len(b)-30] },
		"a.csv: is encrypted; unpack it":        set(8, 1),
		"not supported (zip method 14)":         set(10, 14),
		"its checksum is wrong":                 set(16, 1, 2, 3, 4),
		"the archive does not hold all of it":   set(20, 0xff, 0xff, 0xff, 0x7f),
		"holds more than its archive says":      set(24, 9, 0, 0, 0),
		"its zip entry is cut short":            set(24, 0xff, 0xff, 0xff, 0x7f),
		"a zip archive with files that overlap": set(second+42, 0, 0, 0, 0),
		"its zip entry is damaged":              func(b []byte) []byte { b[50] ^= 0xff; return b },
		"a zip archive whose directory is longer": func(b []byte) []byte {
			var buf bytes.Buffer
			w := zip.NewWriter(&buf)
			for range 400 {
				_, err := w.CreateHeader(&zip.FileHeader{Name: strings.Repeat("x", 60_000), Method: zip.Store})
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			return buf.Bytes()
		},
	} {
		require.ErrorContains(t, try(change), want)
	}
}

// An archive with many files is read, or its directory is too long: where its files are found is no part of that.
func TestZipLongDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.zip")
	refused := false
	for length := 65_100; !refused; length += 16 {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		for i := range 256 {
			_, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%0*d.csv", length, i), Method: zip.Store})
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(path, buf.Bytes(), 0o600))
		srcs, _, err := Sources([]string{path})
		if refused = err != nil; refused {
			require.ErrorContains(t, err, "a zip archive whose directory is longer than 16 MiB; unpack it first")
		} else {
			require.Len(t, srcs, 256)
		}
	}
}

// Whatever an archive, a stream or a text holds, reading it ends in text or an error.
func TestOpenAnything(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.zip")
	archive(t, path, "a.csv", strings.Repeat("date,x\n", 50), "b.csv", "date,x\n", "c.csv", strings.Repeat("date,x\n", 50))
	zipped, err := os.ReadFile(path)
	require.NoError(t, err)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	text := bytes.Repeat([]byte("date,x\n2013-02-08,1\n"), 100)
	seeds := [][]byte{zipped, compress(t, string(text), "x"), z.EncodeAll(text, nil), []byte(in16(binary.LittleEndian, string(text)))}
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(rapid.SampledFrom(seeds).Draw(rt, "seed"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "random"), 1))
		for range rapid.IntRange(0, 8).Draw(rt, "changes") {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(rt, "length")]
		require.NoError(rt, os.WriteFile(path, b, 0o600))
		srcs, _, err := Sources([]string{path})
		for _, s := range srcs {
			_, err = textOf(t, s)
		}
		if err != nil {
			require.ErrorContains(rt, err, "a.zip")
		}
	})
}
