package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/order"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/stats"
)

// question is about a file, or about orders.
type question struct {
	File    string        `json:"file"`
	Queries []windowQuery `json:"queries"`
	Orders  []orderQuery  `json:"orders"`
}

// fileAnswer has the codes of errors, empty if there are none, and if the file opens what its labels are and an answer to
// each query.
type fileAnswer struct {
	Open       string              `json:"open"`
	Verify     string              `json:"verify"`
	Categories map[string][]string `json:"categories"` // by column
	Attributes map[string][]any    `json:"attributes"` // the kind, then texts or bits of numbers, null if missing
	Queries    []windowAnswer      `json:"queries"`
}

// answer returns a fileAnswer or, of orders, a digest of each one's numbers.
func (q *question) answer() (any, error) {
	if q.Orders != nil {
		var out []string
		for i := range q.Orders {
			d, err := q.Orders[i].digest()
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
		return out, nil
	}
	var a fileAnswer
	s, err := reader.Open(q.File, nil)
	if a.Open, err = code(err); err != nil || a.Open != "" {
		return a, err
	}
	if a.Verify, err = code(s.Verify(context.Background())); err != nil {
		return nil, err
	}
	if err := a.label(s); err != nil {
		return nil, err
	}
	for i := range q.Queries {
		w, err := q.Queries[i].answer(s)
		if err != nil {
			return nil, fmt.Errorf("query %d: %w", i, err)
		}
		a.Queries = append(a.Queries, w)
	}
	return a, s.Close()
}

func (a *fileAnswer) label(s *reader.Store) error {
	a.Categories, a.Attributes = map[string][]string{}, map[string][]any{}
	for _, g := range s.Meta().Schema.Groups {
		for _, c := range g.Columns {
			texts, err := s.Categories(c.Name)
			if err != nil {
				return err
			}
			if texts != nil {
				a.Categories[c.Name] = texts
			}
		}
	}
	for _, attribute := range s.Attributes() {
		values := []any{attribute.Kind.String()}
		for i := range s.Tickers() {
			text, ok := attribute.Text(i)
			number := attribute.Number(i)
			switch {
			case ok:
				values = append(values, text)
			case math.IsNaN(number):
				values = append(values, nil)
			default:
				values = append(values, fmt.Sprintf("%016x", math.Float64bits(number)))
			}
		}
		a.Attributes[attribute.Name] = values
	}
	return nil
}

// code returns the code of what is wrong with a file. Any other error is one.
func code(err error) (string, error) {
	var c format.Code
	if err == nil || errors.As(err, &c) {
		return string(c), nil
	}
	return "", err
}

// refusal returns why a query is refused. Any other error is one.
func refusal(err error) (string, error) {
	if errors.Is(err, reader.ErrQuery) || errors.Is(err, reader.ErrNotFound) {
		return err.Error(), nil
	}
	return "", err
}

// instant is a number of the file's units, or a text such as 2020-01-31T09:30:00.5 in UTC.
type instant struct {
	units int64
	text  string
}

func instantOf(units *int64) *instant {
	if units == nil {
		return nil
	}
	return &instant{units: *units}
}

func (i instant) MarshalJSON() ([]byte, error) { return []byte(strconv.FormatInt(i.units, 10)), nil }

func (i *instant) UnmarshalJSON(b []byte) (err error) {
	if b[0] != '"' {
		i.units, err = strconv.ParseInt(string(b), 10, 64)
		return err
	}
	return json.Unmarshal(b, &i.text)
}

// time returns the zero time of nil.
func (i *instant) time(s *reader.Store) (time.Time, error) {
	switch {
	case i == nil:
		return time.Time{}, nil
	case i.text == "":
		return s.Meta().Schema.Unit.Time(i.units), nil
	}
	return time.Parse("2006-01-02T15:04:05", i.text)
}

// windowQuery asks for windows, and for what is made of them. Lists that are left out are not the same as empty ones.
type windowQuery struct {
	Inputs       []string  `json:"inputs"`
	Targets      []string  `json:"targets"`
	Optional     []string  `json:"optional"`
	Lookback     int       `json:"lookback"`
	Horizons     []int     `json:"horizons"`
	TargetLength int       `json:"target_length"`
	Stride       int       `json:"stride"`
	At           []instant `json:"at"`
	Breaks       []string  `json:"breaks"`
	Tickers      []string  `json:"tickers"`
	Where        []string  `json:"where"`
	From         *instant  `json:"from"`
	To           *instant  `json:"to"`

	Splits     []splitQuery `json:"splits,omitempty"`
	Walks      []walkQuery  `json:"walks,omitempty"`
	Batches    []batchQuery `json:"batches,omitempty"`
	ByTime     bool         `json:"by_time,omitempty"`
	Statistics bool         `json:"statistics,omitempty"`
	Full       bool         `json:"full,omitempty"` // also the bytes that are digested
}

// windowAnswer has either a refusal or all else.
type windowAnswer struct {
	Refused     string        `json:"refused"`
	Windows     int           `json:"windows"`
	Digest      string        `json:"digest"`
	Fingerprint string        `json:"fingerprint"`
	Full        string        `json:"full"`
	Splits      []any         `json:"splits"`
	Walks       []any         `json:"walks"`
	Batches     []any         `json:"batches"`
	ByTime      string        `json:"by_time"`
	Statistics  [2][]([5]any) `json:"statistics"`
}

func (q *windowQuery) windows(s *reader.Store) (*reader.Windows, error) {
	rq := reader.Query{
		Inputs: q.Inputs, Targets: q.Targets, Optional: q.Optional, Lookback: q.Lookback, Horizons: q.Horizons,
		TargetLength: q.TargetLength, Stride: q.Stride, Breaks: q.Breaks, Tickers: q.Tickers, Where: q.Where,
	}
	var err error
	if rq.From, err = q.From.time(s); err != nil {
		return nil, err
	}
	if rq.To, err = q.To.time(s); err != nil {
		return nil, err
	}
	if q.At != nil {
		rq.At = []time.Time{}
	}
	for i := range q.At {
		t, err := q.At[i].time(s)
		if err != nil {
			return nil, err
		}
		rq.At = append(rq.At, t)
	}
	return s.Windows(rq)
}

func (q *windowQuery) answer(s *reader.Store) (a windowAnswer, err error) {
	w, err := q.windows(s)
	if a.Refused, err = refusal(err); err != nil || a.Refused != "" {
		return a, err
	}
	var full []byte
	a.Windows = w.Len()
	a.Fingerprint = fingerprint(w)
	a.Digest, err = digest(func(h hash.Hash) error {
		return records(w, true, func(b []byte) {
			h.Write(b)
			if q.Full {
				full = append(full, b...)
			}
		})
	})
	if err != nil {
		return a, err
	}
	a.Full = hex.EncodeToString(full)
	for i := range q.Splits {
		v, err := q.Splits[i].answer(w)
		if err != nil {
			return a, fmt.Errorf("split %d: %w", i, err)
		}
		a.Splits = append(a.Splits, v)
	}
	for i := range q.Walks {
		v, err := q.Walks[i].answer(w)
		if err != nil {
			return a, fmt.Errorf("walk %d: %w", i, err)
		}
		a.Walks = append(a.Walks, v)
	}
	for i := range q.Batches {
		v, err := q.Batches[i].answer(w)
		if err != nil {
			return a, fmt.Errorf("batches %d: %w", i, err)
		}
		a.Batches = append(a.Batches, v)
	}
	if q.ByTime {
		if a.ByTime, err = byTime(w); err != nil {
			return a, err
		}
	}
	if q.Statistics {
		inputs, targets, err := w.Statistics(context.Background())
		if err != nil {
			return a, err
		}
		a.Statistics = [2][]([5]any){numbers(inputs), numbers(targets)}
	}
	return a, nil
}

// numbers returns count, mean, m2, minimum and maximum; of no cells only the count.
func numbers(columns []stats.Moments) (out [][5]any) {
	for _, m := range columns {
		if m.N == 0 {
			out = append(out, [5]any{0})
			continue
		}
		out = append(out, [5]any{m.N, m.Mean, m.M2, m.Min, m.Max})
	}
	return out
}

// gathered is how many windows' cells are in memory at once.
const gathered = 256

// records uses a record of each window in order: ticker's number, anchor row and anchor time as i64, and if wanted the
// bits of its cells, x and then y; all little-endian.
func records(w *reader.Windows, cells bool, use func([]byte)) error {
	s := w.Store()
	v, err := s.View()
	if err != nil {
		return err
	}
	defer v.Release()
	in, out := w.Inputs(), w.Targets()
	nx, ny := in.Size(), out.Size()
	var b []byte
	for from := 0; from < w.Len(); from += gathered {
		var ids []int
		for i := from; i < min(w.Len(), from+gathered); i++ {
			ids = append(ids, i)
		}
		var x, y []float32
		if cells {
			x, y = make([]float32, len(ids)*nx), make([]float32, len(ids)*ny)
			if err := w.Gather(ids, x, y); err != nil {
				return err
			}
		}
		for k, i := range ids {
			p := w.Locate(i)
			times, err := v.Times(p.Ticker)
			if err != nil {
				return err
			}
			b = binary.LittleEndian.AppendUint64(b[:0], uint64(p.Ticker))
			b = binary.LittleEndian.AppendUint64(b, uint64(p.Anchor))
			b = binary.LittleEndian.AppendUint64(b, uint64(times[p.Anchor]))
			if cells {
				b = appendCells(b, x[k*nx:(k+1)*nx])
				b = appendCells(b, y[k*ny:(k+1)*ny])
			}
			use(b)
		}
	}
	return nil
}

func appendCells(b []byte, cells []float32) []byte {
	for _, v := range cells {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func appendInts(b []byte, v ...int64) []byte {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func digest(f func(hash.Hash) error) (string, error) {
	h := sha256.New()
	if err := f(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func fingerprint(w *reader.Windows) string {
	sum := w.Fingerprint()
	return hex.EncodeToString(sum[:])
}

// span is a range of times, either end of which may be null.
type span [2]*instant

// margin is an embargo or a reach: a number (of times, of rows) or a number of seconds.
type margin struct {
	Count   *int64 `json:"count"`
	Seconds *int64 `json:"seconds"`
}

func (m *margin) duration() time.Duration {
	if m.Seconds == nil {
		return 0
	}
	return time.Duration(*m.Seconds) * time.Second
}

func (m *margin) count() int64 {
	if m.Count == nil {
		return 0
	}
	return *m.Count
}

func (m *margin) reach() *reader.Reach {
	if m == nil {
		return nil
	}
	return &reader.Reach{Rows: m.count(), Duration: m.duration()}
}

type splitQuery struct {
	Train   []span  `json:"train"`
	Valid   []span  `json:"valid"`
	Test    []span  `json:"test"`
	Embargo margin  `json:"embargo"`
	Reach   *margin `json:"reach"`
}

// answer returns the text of a refusal, or the digest of the records and the fingerprint of each part.
func (q *splitQuery) answer(w *reader.Windows) (any, error) {
	sp := reader.Split{Embargo: q.Embargo.duration(), EmbargoTimes: int(q.Embargo.count()), Reach: q.Reach.reach()}
	for _, part := range []struct {
		from []span
		to   *[]reader.TimeRange
	}{{q.Train, &sp.Train}, {q.Valid, &sp.Valid}, {q.Test, &sp.Test}} {
		for _, r := range part.from {
			from, err := r[0].time(w.Store())
			if err != nil {
				return nil, err
			}
			to, err := r[1].time(w.Store())
			if err != nil {
				return nil, err
			}
			*part.to = append(*part.to, reader.TimeRange{From: from, To: to})
		}
	}
	parts, err := w.Split(sp)
	if why, err := refusal(err); err != nil || why != "" {
		return "refused: " + why, err
	}
	return partsAnswer(parts)
}

// partsAnswer returns the count, digest and fingerprint of the training, validation and test windows.
func partsAnswer(parts reader.Parts) (any, error) {
	var out [][3]any
	for _, w := range []*reader.Windows{parts.Train, parts.Valid, parts.Test} {
		d, err := digest(func(h hash.Hash) error { return records(w, false, func(b []byte) { h.Write(b) }) })
		if err != nil {
			return nil, err
		}
		out = append(out, [3]any{w.Len(), d, fingerprint(w)})
	}
	return out, nil
}

type walkQuery struct {
	Every   string   `json:"every"`
	Train   string   `json:"train"`
	Valid   string   `json:"valid"`
	Start   *instant `json:"start"`
	Embargo margin   `json:"embargo"`
	Reach   *margin  `json:"reach"`
}

// answer returns the text of a refusal, or of each fold the three ranges, in units of the file, and the parts. An end that no
// time of the file can have is open.
func (q *walkQuery) answer(w *reader.Windows) (any, error) {
	f := reader.WalkForward{Embargo: q.Embargo.duration(), EmbargoTimes: int(q.Embargo.count()), Reach: q.Reach.reach()}
	var err error
	if f.Start, err = q.Start.time(w.Store()); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		from string
		to   *reader.Period
	}{{q.Every, &f.Every}, {q.Train, &f.Train}, {q.Valid, &f.Valid}} {
		if p.from == "" {
			continue
		}
		if *p.to, err = reader.ParsePeriod(p.from); err != nil {
			return nil, err
		}
	}
	folds, err := w.WalkForward(f)
	if why, err := refusal(err); err != nil || why != "" {
		return "refused: " + why, err
	}
	unit := w.Store().Meta().Schema.Unit
	out := []any{}
	for _, fold := range folds {
		ranges := []any{}
		for _, r := range []reader.TimeRange{fold.Train, fold.Valid, fold.Test} {
			for _, t := range []time.Time{r.From, r.To} {
				if v, exact := unit.Ceil(t); t.IsZero() || v == math.MinInt64 || v == math.MaxInt64 && !exact {
					ranges = append(ranges, nil)
				} else {
					ranges = append(ranges, v)
				}
			}
		}
		parts, err := partsAnswer(fold.Parts)
		if err != nil {
			return nil, err
		}
		out = append(out, []any{ranges, parts})
	}
	return out, nil
}

var (
	kinds = map[string]order.Kind{"sequential": order.KindSequential, "exact": order.KindExact, "blocked": order.KindBlocked}
	tails = map[string]order.Tail{"keep": order.Keep, "drop": order.Drop, "pad": order.Pad}
)

type batchQuery struct {
	Order      string `json:"order"`
	Seed       int64  `json:"seed"`
	Epoch      int64  `json:"epoch"`
	GroupBytes int64  `json:"group_bytes"`
	Start      int64  `json:"start"`
	Batch      int64  `json:"batch"`
	Rank       int64  `json:"rank"`
	World      int64  `json:"world"`
	Tail       string `json:"tail"`
}

// answer returns the order's fingerprint, W and K, and a digest of each batch's numbers, of how many are valid, of the
// position to go on from, and of all its cells.
func (q *batchQuery) answer(w *reader.Windows) (any, error) {
	o, err := w.Order(kinds[q.Order], q.Seed, q.Epoch, q.GroupBytes)
	if err != nil {
		return nil, err
	}
	share, err := order.NewShare(o.Len(), q.Start, q.Batch, q.Rank, cmp.Or(q.World, 1), tails[q.Tail])
	if err != nil {
		return nil, err
	}
	name, err := w.OrderFingerprint(o)
	if err != nil {
		return nil, err
	}
	size, chunks := o.Chunk()
	d, err := digest(func(h hash.Hash) error {
		for batch, err := range w.Batches(context.Background(), o, share) {
			if err != nil {
				return err
			}
			b := appendInts(nil, int64(len(batch.IDs)), int64(batch.Valid), batch.Next)
			for _, id := range batch.IDs {
				b = appendInts(b, int64(id))
			}
			h.Write(appendCells(appendCells(b, batch.X), batch.Y))
		}
		return nil
	})
	return []any{hex.EncodeToString(name[:]), size, chunks, share.Steps(), d}, err
}

// byTime returns a digest of the distinct anchor times, of the numbers of the windows at each, and of the fingerprint of
// an order of them.
func byTime(w *reader.Windows) (string, error) {
	by, err := w.ByTime()
	if err != nil {
		return "", err
	}
	o, err := order.Exact(int64(by.Len()), 7, 1)
	if err != nil {
		return "", err
	}
	name, err := by.OrderFingerprint(o)
	if err != nil {
		return "", err
	}
	return digest(func(h hash.Hash) error {
		h.Write(name[:])
		for k, t := range by.Times() {
			ids, err := by.IDs(nil, k)
			if err != nil {
				return err
			}
			b := appendInts(nil, t, int64(len(ids)))
			for _, id := range ids {
				b = appendInts(b, int64(id))
			}
			h.Write(b)
		}
		return nil
	})
}

type orderQuery struct {
	Order string  `json:"order"`
	N     int64   `json:"n"`
	Seed  int64   `json:"seed"`
	Epoch int64   `json:"epoch"`
	W     int64   `json:"w"`
	K     int64   `json:"k"`
	At    []int64 `json:"at"` // positions
}

// digest returns a digest of the numbers at the positions.
func (q *orderQuery) digest() (string, error) {
	var o order.Order
	var err error
	switch kinds[q.Order] {
	case order.KindExact:
		o, err = order.Exact(q.N, q.Seed, q.Epoch)
	case order.KindBlocked:
		o, err = order.Blocked(q.N, q.Seed, q.Epoch, q.W, q.K)
	default:
		o, err = order.Sequential(q.N)
	}
	if err != nil {
		return "", err
	}
	return digest(func(h hash.Hash) error {
		var b []byte
		for _, p := range q.At {
			b = appendInts(b, o.At(p))
		}
		h.Write(b)
		return nil
	})
}
