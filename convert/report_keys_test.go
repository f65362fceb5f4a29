package convert_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
)

// keys lists the keys of a type's JSON with their types, in order.
func keys(t reflect.Type, under string) (out []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, omit, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case f.Anonymous:
			out = append(out, keys(of, under)...)
			continue
		case name == "":
			continue
		}
		key, null := under+name, ""
		if omit == "omitempty" {
			key += "?"
		} else if f.Type.Kind() == reflect.Pointer {
			null = " or null"
		}
		var kind string
		var inner reflect.Type
		switch {
		case of == reflect.TypeFor[time.Time]():
			kind = "time"
		case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
			kind, inner = "list of objects", of.Elem()
		case of.Kind() == reflect.Slice:
			kind = "list of " + of.Elem().Kind().String() + "s"
		case of.Kind() == reflect.Struct:
			kind, inner = "object", of
		default:
			kind = of.Kind().String()
		}
		kind = strings.NewReplacer("int64", "integer", "int", "integer", "float64", "number", "string", "text").Replace(kind)
		out = append(out, "`"+key+"` | "+kind+null)
		if inner != nil {
			below := under + name + "."
			if of.Kind() == reflect.Slice {
				below = under + name + "[]."
			}
			out = append(out, keys(inner, below)...)
		}
	}
	return out
}

// The keys of the report are those that docs/convert.md lists, in this order, with these types.
func TestReportKeysAreDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "convert.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(b), "<!-- table: report -->\n| key | type | meaning |\n|---|---|---|\n")
	require.True(t, ok)
	table, _, ok = strings.Cut(table, "<!-- table: end of report -->")
	require.True(t, ok)
	var documented []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		require.Len(t, cells, 3, line)
		require.NotEmpty(t, cells[2], line)
		documented = append(documented, cells[0]+" | "+cells[1])
	}
	require.Equal(t, keys(reflect.TypeFor[convert.Report](), ""), documented)
}
