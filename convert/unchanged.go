package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

// input is an input as the provenance names it.
type input struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Hash  string `json:"xxh64"` // of the file's bytes, or of those of the archive that it is in
}

// hasher hashes files. While they are also read it stays behind, so that their bytes need not come from the disk again.
type hasher struct {
	read   atomic.Int64 // bytes that were read of all files
	done   atomic.Bool  // they were read
	inputs []input      // nil: not yet hashed
}

// hash hashes the files of sources.
func (h *hasher) hash(ctx context.Context, sources []ingest.Source) error {
	files := map[string]string{} // hashes by path
	var inputs []input
	var hashed int64
	buf := make([]byte, 1<<20)
	for _, s := range sources {
		sum, ok := files[s.File()]
		if !ok {
			f, err := os.Open(s.File())
			if err != nil {
				return err
			}
			x := xxhash.New()
			for {
				for hashed > h.read.Load() && !h.done.Load() && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				if err = ctx.Err(); err != nil {
					break
				}
				var n int
				n, err = f.Read(buf)
				_, _ = x.Write(buf[:n]) // never fails
				if hashed += int64(n); err != nil {
					break
				}
			}
			if closing := f.Close(); err == io.EOF {
				err = closing
			}
			if err != nil {
				return err
			}
			sum = fmt.Sprintf("%016x", x.Sum64())
			files[s.File()] = sum
		}
		name := filepath.Base(s.Path) // folders are of this machine
		inputs = append(inputs, input{name, s.Size, sum})
	}
	h.inputs = inputs
	return nil
}

// hashed runs use, which reads the sources, and hashes them meanwhile unless that was done.
func (c *conversion) hashed(ctx context.Context, use func() error) error {
	if c.hash.inputs != nil {
		return use()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.hash.hash(ctx, c.survey.Sources) }()
	err := use()
	if err != nil {
		cancel()
	}
	c.hash.done.Store(true)
	if hashing := <-ended; err == nil {
		err = hashing
	}
	return err
}

// unchanged returns the report of the existing output if this conversion would make it again, else nil.
func (c *conversion) unchanged(ctx context.Context) (*Report, error) {
	o := c.o
	if _, err := os.Stat(o.Output); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s, err := reader.Open(o.Output, &reader.Options{Access: reader.Read})
	var code format.Code
	switch {
	case err == nil:
	case !errors.As(err, &code):
		return nil, err
	case code == format.NotWstore:
		return nil, fmt.Errorf("the output %s: %w, and is not a store; --force replaces it", o.Output, fs.ErrExist)
	case code == format.Unsupported:
		return nil, fmt.Errorf("the output %s: %w, and is of another version (%s); --force replaces it", o.Output, fs.ErrExist, err.Error())
	default:
		return nil, nil // a damaged store is to be replaced
	}
	old, err := c.again(ctx, s)
	if old != nil && err == nil {
		err = old.read(s, o.Lookback)
	}
	if err = errors.Join(err, s.Close()); err != nil || old == nil {
		return nil, err
	}
	old.SkippedFiles, old.Unchanged = c.report.SkippedFiles, true
	return old, nil
}

// again returns the report in a store that was made of the same inputs in the same way, else nil.
func (c *conversion) again(ctx context.Context, s *reader.Store) (*Report, error) {
	var was struct {
		Program string          `json:"program"`
		Version string          `json:"version"`
		Options json.RawMessage `json:"options"`
		Inputs  []input         `json:"inputs"`
		Static  []input         `json:"static"`
		Report  *Report         `json:"report"`
	}
	text, err := s.Provenance()
	if err != nil || json.Unmarshal(text, &was) != nil || was.Report == nil {
		return nil, err
	}
	options, err := json.Marshal(c.options())
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if json.Compact(&compact, was.Options) != nil || !bytes.Equal(compact.Bytes(), options) ||
		was.Program != program || was.Version != c.o.Version || s.Meta().Newest.Align() != int64(c.o.Align) {
		return nil, nil
	}
	// The sizes tell most changes, without reading anything.
	if !sameSizes(was.Inputs, c.survey.Sources) {
		return nil, nil
	}
	c.hash.done.Store(true)
	if err := c.hash.hash(ctx, c.survey.Sources); err != nil {
		return nil, err
	}
	if !slices.Equal(was.Inputs, c.hash.inputs) || !slices.Equal(was.Static, c.staticInputs) {
		return nil, nil
	}
	return was.Report, nil
}

func sameSizes(was []input, sources []ingest.Source) bool {
	if len(was) != len(sources) {
		return false
	}
	for i, s := range sources {
		if was[i].Bytes != s.Size || was[i].Name != filepath.Base(s.Path) {
			return false
		}
	}
	return true
}
