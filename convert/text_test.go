package convert_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
)

// The same rows give the same content, however the text that holds them is packed and laid out.
func TestSameContent(t *testing.T) {
	files := map[string]string{
		"Ä.csv": "date,Schluß,x\n2024-01-02,1.5,2\n2024-01-03,,3\n", "B.csv": "date,Schluß,x\n2024-01-02,7,8\n", "EMPTY.csv": "date,Schluß,x\n",
	}
	replaced := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	packed := func(name, text string) string {
		switch filepath.Ext(name) {
		case ".gz":
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, err := w.Write([]byte(text))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			return b.String()
		case ".zst":
			w, err := zstd.NewWriter(nil)
			require.NoError(t, err)
			return string(w.EncodeAll([]byte(text), nil))
		}
		return text
	}
	digests := map[string]string{}
	for name, c := range map[string]struct {
		change func(string) string
		end    string
		zip    bool
		o      ingest.TextOptions
	}{
		"plain":      {replaced(), ".csv", false, ingest.TextOptions{}},
		"gzip":       {replaced(), ".csv.gz", false, ingest.TextOptions{}},
		"zstd":       {replaced(), ".csv.zst", false, ingest.TextOptions{}},
		"zip":        {replaced(), ".csv", true, ingest.TextOptions{}},
		"semicolons": {replaced(",", ";"), ".csv", false, ingest.TextOptions{}},
		"tabs":       {replaced(",", "\t"), ".tsv", true, ingest.TextOptions{}},
		"old Mac":    {replaced("\n", "\r"), ".csv", false, ingest.TextOptions{}},
		"Windows":    {replaced("\n", "\r\n", "ß", "\xdf"), ".csv", false, ingest.TextOptions{Encoding: "windows-1252"}},
		"UTF-16": {func(s string) string {
			b := []byte("\xff\xfe")
			for _, c := range utf16.Encode([]rune(s)) {
				b = append(b, byte(c), byte(c>>8))
			}
			return string(b)
		}, ".csv", true, ingest.TextOptions{}},
		"a title":    {func(s string) string { return "made by X\n" + s }, ".csv", false, ingest.TextOptions{SkipLines: 1}},
		"no header":  {func(s string) string { return s[strings.Index(s, "\n")+1:] }, ".csv", false, ingest.TextOptions{Names: []string{"date", "Schluß", "x"}}},
		"two quotes": {replaced("2024-01-02", "'2024-01-02'"), ".csv", false, ingest.TextOptions{Quote: "'"}},
	} {
		dir := t.TempDir()
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for file, text := range files {
			file = strings.TrimSuffix(file, ".csv") + c.end
			text = packed(file, c.change(text))
			if !c.zip {
				write(t, dir, file, text)
				continue
			}
			w, err := z.Create("panel/" + file)
			require.NoError(t, err)
			_, err = w.Write([]byte(text))
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		if c.zip {
			write(t, dir, "panel.zip", b.String())
		}
		r, _ := run(t, convert.Options{Inputs: []string{dir}, Text: c.o})
		require.Equal(t, 3, r.Tickers, name)
		digests[name] = r.Digest
	}
	for name, d := range digests {
		require.Equal(t, digests["plain"], d, name)
	}
}

func TestZipIsNoOutput(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("A.csv")
	require.NoError(t, err)
	_, err = w.Write([]byte("date,x\n2024-01-02,1\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	path := write(t, t.TempDir(), "a.zip", b.String())
	_, err = convert.Run(t.Context(), convert.Options{Inputs: []string{path}, Output: path, Overwrite: true})
	require.ErrorContains(t, err, "is both input and output")
}
