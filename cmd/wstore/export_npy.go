package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/f32"
)

const metaFile = "meta.json"

// npyMeta is the text of meta.json.
type npyMeta struct {
	Schema  int        `json:"schema"`
	Unit    string     `json:"unit"` // of times: s, ms, us or ns since 1970, UTC
	Zone    string     `json:"zone"`
	Rows    int64      `json:"rows"`
	Groups  []npyGroup `json:"groups"`
	Tickers []string   `json:"tickers"`

	Categories map[string][]string `json:"categories,omitempty"` // of columns whose cells are their numbers
	Attributes []attribute         `json:"attributes,omitempty"` // of tickers
}

type npyGroup struct {
	Name    string   `json:"name"`
	File    string   `json:"file"`
	DType   string   `json:"dtype"`
	Columns []string `json:"columns"`
}

// npy writes the rows as a folder of arrays.
func (p *panel) npy(ctx context.Context, path string, force bool) error {
	out, err := createFolder(path, force)
	if err != nil {
		return err
	}
	return out.finish(p.writeArrays(ctx, out.temp))
}

// isArrayFile reports whether a file's name is one that writeArrays gives.
func isArrayFile(name string) bool { return name == metaFile || strings.HasSuffix(name, ".npy") }

func (p *panel) writeArrays(ctx context.Context, dir string) error {
	schema := p.s.Meta().Schema
	meta := npyMeta{Schema: jsonSchema, Unit: schema.Unit.String(), Zone: schema.Zone, Rows: p.rows, Tickers: []string{},
		Categories: p.categories, Attributes: p.labels().Attributes}
	files := arrayFiles(schema.Groups)
	for g := range schema.Groups {
		group := &schema.Groups[g]
		out := npyGroup{Name: group.Name, File: files[g], DType: group.DType.String()}
		for _, c := range group.Columns {
			out.Columns = append(out.Columns, c.Name)
		}
		meta.Groups = append(meta.Groups, out)
		width := len(group.Columns)
		err := p.writeArray(ctx, filepath.Join(dir, files[g]), group.DType, []int64{p.rows, int64(width)}, func(dst []byte, s series) ([]byte, error) {
			if group.DType == format.Int64 {
				ends, err := p.v.LabelEnds(s.ticker, g)
				if err != nil {
					return nil, err
				}
				return f32.AppendInt64(dst, ends[s.from:s.to]), nil
			}
			cells, err := p.v.Series(s.ticker, g)
			if err != nil {
				return nil, err
			}
			return f32.Append(dst, cells[s.from*width:s.to*width]), nil
		})
		if err != nil {
			return err
		}
	}
	err := p.writeArray(ctx, filepath.Join(dir, "time.npy"), format.Int64, []int64{p.rows}, func(dst []byte, s series) ([]byte, error) {
		times, err := p.v.Times(s.ticker)
		if err != nil {
			return nil, err
		}
		return f32.AppendInt64(dst, times[s.from:s.to]), nil
	})
	if err != nil {
		return err
	}
	starts := []int64{0}
	for _, s := range p.series {
		meta.Tickers = append(meta.Tickers, p.s.Tickers()[s.ticker])
		starts = append(starts, starts[len(starts)-1]+int64(s.to-s.from))
	}
	err = writeFile(filepath.Join(dir, "ticker_start.npy"), func(w io.Writer) error {
		if _, err := w.Write(npyHeader(format.Int64, []int64{int64(len(starts))})); err != nil {
			return err
		}
		_, err := w.Write(f32.AppendInt64(nil, starts))
		return err
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, metaFile), func(w io.Writer) error { return writeJSON(w, meta) })
}

// writeArray writes one array; bytes appends those of a piece of it.
func (p *panel) writeArray(ctx context.Context, path string, dtype format.DType, shape []int64, bytes func(dst []byte, s series) ([]byte, error)) error {
	return writeFile(path, func(w io.Writer) error {
		if _, err := w.Write(npyHeader(dtype, shape)); err != nil {
			return err
		}
		var buf []byte
		for s := range p.pieces() {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := p.v.Guard(func() (err error) {
				buf, err = bytes(buf[:0], s)
				return err
			})
			if err != nil {
				return err
			}
			if _, err := w.Write(buf); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFile writes a file and syncs it.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// npyHeader returns the header of a .npy file, version 1.0: little-endian, row-major, the data at a multiple of 64.
func npyHeader(dtype format.DType, shape []int64) []byte {
	descr := "<f4"
	if dtype == format.Int64 {
		descr = "<i8"
	}
	dims := ""
	for _, n := range shape {
		dims += fmt.Sprintf("%d, ", n)
	}
	if len(shape) > 1 { // only a tuple of one ends in a comma
		dims = strings.TrimSuffix(dims, ", ")
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, strings.TrimSuffix(dims, " "))
	const head, align = 10, 64 // magic, version and length
	dict += strings.Repeat(" ", align-1-(head+len(dict))%align) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	return append(b, dict...)
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	device    = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com\d|lpt\d)(\.|$)`) // on Windows, whatever comes behind the dot
)

// arrayFiles returns a file name for each group: its own where every system can hold it, else groupN.npy. Names differ
// in more than case.
func arrayFiles(groups []format.Group) []string {
	taken := map[string]bool{"time": true, "ticker_start": true}
	files := make([]string, len(groups))
	for g := range groups {
		if name := groups[g].Name; plainName.MatchString(name) && !device.MatchString(name) && !taken[strings.ToLower(name)] {
			taken[strings.ToLower(name)] = true
			files[g] = name + ".npy"
		}
	}
	for g := range groups {
		if files[g] != "" {
			continue
		}
		name := fmt.Sprintf("group%d", g)
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		files[g] = name + ".npy"
	}
	return files
}
