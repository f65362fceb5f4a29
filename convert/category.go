package convert

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wstore/wstore/format"
)

// labelsOf is how many bytes the texts of categories and the attributes may take together. They stay in memory.
func labelsOf(o *Options) int64 { return o.Memory / 6 }

// dictionary numbers the texts of a column with categories in the order in which they come up. The file has them in the
// order of their bytes; sorted renumbers them.
type dictionary struct {
	name    string
	texts   []string
	numbers map[string]int32
	batch   []int32 // number of each text of the current batch's dictionary, unseen or missingText

	renumbered []int32 // from the order of appearance to that of the bytes
}

const (
	unseen      = -2
	missingText = -1

	// perText is about what a text takes besides its bytes, in the map, the lists and the file's section.
	perText = 128
)

// begin prepares for a batch with n texts.
func (d *dictionary) begin(n int) {
	d.batch = d.batch[:0]
	for range n {
		d.batch = append(d.batch, unseen)
	}
}

// category returns the number of a text, missingText, or why it can't have one.
func (t *table) category(d *dictionary, text string) (n int32, reason, hint string) {
	if text == "" {
		return missingText, "", ""
	}
	if n, ok := d.numbers[text]; ok {
		return n, "", ""
	}
	switch {
	case len(text) > format.MaxText:
		return 0, fmt.Sprintf("has %d bytes, and a category at most %d", len(text), format.MaxText), "is it a column of categories?"
	case !utf8.ValidString(text):
		return 0, "is not valid UTF-8", "name its encoding with --encoding"
	case len(d.texts) == format.MaxTexts:
		return 0, fmt.Sprintf("is one category more than %d", format.MaxTexts), "is it a column of categories?"
	}
	cost := int64(perText + 3*len(text))
	if t.labels+cost > t.mostLabels {
		return 0, fmt.Sprintf("is one category too many: %d are known, and with attributes need a sixth of --memory", len(d.texts)),
			"is it a column of categories? else raise --memory"
	}
	t.labels += cost
	t.used += cost
	n = int32(len(d.texts))
	text = strings.Clone(text)
	d.texts = append(d.texts, text)
	d.numbers[text] = n
	return n, "", ""
}

// sort puts the texts in the order of their bytes.
func (d *dictionary) sort() {
	slices.Sort(d.texts)
	d.renumbered = make([]int32, len(d.texts))
	for i, text := range d.texts {
		d.renumbered[d.numbers[text]] = int32(i)
	}
}

// clip shortens a text for an error.
func clip(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
