package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"wstore": main})
}

// TestScripts runs the transcripts in testdata/script with the real command, each in an empty folder.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=1") // else every command takes a second more
			data, err := filepath.Abs(filepath.Join("..", "..", "ingest", "testdata"))
			env.Setenv("INGEST", data)
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"mkstore": mkstore, "damage": damage, "exits": exits, "json": checkJSON, "notemp": noTemp,
			"closedpipe": closedPipe, "interrupt": interrupt, "samecontent": sameContent,
		},
	})
}

func need(ts *testscript.TestScript, neg bool, args []string, least int, usage string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

// exits runs a command that must end with an exit code; stdout and stderr then look at its output.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "exits CODE command...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := code(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func code(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// checkJSON checks that each line of a file is an object with "schema": 1, and, if keys are given, exactly those keys.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "json FILE [key...]")
	want := append([]string{"schema"}, args[1:]...)
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	for _, line := range lines {
		var object map[string]any
		ts.Check(json.Unmarshal([]byte(line), &object))
		if object["schema"] != 1.0 {
			ts.Fatalf("no schema 1: %s", line)
		}
		if len(want) == 1 {
			continue
		}
		var keys []string
		d := json.NewDecoder(strings.NewReader(line))
		for depth := 0; ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			ts.Check(err)
			switch token {
			case json.Delim('{'), json.Delim('['):
				depth++
				continue
			case json.Delim('}'), json.Delim(']'):
				depth--
				continue
			}
			if depth == 1 {
				keys = append(keys, token.(string))
				var value any
				ts.Check(d.Decode(&value))
			}
		}
		if !slices.Equal(keys, want) {
			ts.Fatalf("keys %v, want %v", keys, want)
		}
	}
}

// noTemp checks that a folder holds no temporary file.
func noTemp(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "notemp DIR")
	if hasTemp(ts, args[0]) {
		ts.Fatalf("a temporary file was left behind in %s", args[0])
	}
}

func hasTemp(ts *testscript.TestScript, dir string) bool {
	entries, err := os.ReadDir(ts.MkAbs(dir))
	ts.Check(err)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasSuffix(e.Name(), ".tmp") && e.Name() != ".tmp"
	})
}

// sameContent compares the content digests of two stores.
func sameContent(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "samecontent FILE FILE")
	var digests [2][format.DigestSize]byte
	for i, name := range args[:2] {
		s, err := reader.Open(ts.MkAbs(name), &reader.Options{Access: reader.Read})
		ts.Check(err)
		digests[i] = s.Meta().Digest
		ts.Check(s.Close())
	}
	if digests[0] != digests[1] {
		ts.Fatalf("digests %x and %x", digests[0], digests[1])
	}
}

// start starts the tool with its output in a pipe, and waits until it writes: to the pipe, or with -o to a temporary file.
func start(ts *testscript.TestScript, args []string) (*exec.Cmd, io.ReadCloser, *bytes.Buffer) {
	name := "wstore"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], name)
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	if slices.Contains(args, "-") { // it waits for its input
		_, err := cmd.StdinPipe()
		ts.Check(err)
	}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	if slices.Contains(args, "-o") {
		for begun := time.Now(); !hasTemp(ts, ".") && time.Since(begun) < 10*time.Second; {
			time.Sleep(100 * time.Microsecond)
		}
	} else {
		_, err = bufio.NewReaderSize(out, 16).ReadByte()
		ts.Check(err)
	}
	return cmd, out, stderr
}

// closedPipe runs the tool with a reader that goes away: it must end quietly.
func closedPipe(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "closedpipe ARGS...")
	cmd, out, stderr := start(ts, args)
	ts.Check(out.Close())
	if got := code(ts, cmd.Wait()); got != 0 || stderr.Len() > 0 {
		ts.Fatalf("exit code %d, stderr %q", got, stderr)
	}
}

// interrupt runs the tool and sends a signal while it writes.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "interrupt INT|TERM|HUP ARGS...")
	signal := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	cmd, out, stderr := start(ts, args[1:])
	ts.Check(cmd.Process.Signal(signal))
	_, err := io.Copy(io.Discard, out)
	ts.Check(err)
	if got := code(ts, cmd.Wait()); got != exitInterrupted || stderr.String() != "wstore: interrupted\n" {
		ts.Fatalf("exit code %d, stderr %q", got, stderr)
	}
}

// damage changes a file: flip OFFSET, truncate SIZE, extend, slot1, or incompat.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "damage FILE flip OFFSET | truncate SIZE | extend | slot1 | incompat")
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	number := func() int {
		n, err := strconv.Atoi(args[2])
		ts.Check(err)
		return n
	}
	switch args[1] {
	case "flip":
		b[number()] ^= 1
	case "truncate":
		b = b[:number()]
	case "extend":
		b = append(b, 0)
	case "slot1":
		b[4096] = 1
	case "incompat":
		b[32] |= 1 << 5
		binary.LittleEndian.PutUint64(b[504:], xxhash.Sum64(b[:504]))
	default:
		ts.Fatalf("unknown damage %q", args[1])
	}
	ts.Check(os.WriteFile(path, b, 0o666))
}

// mkstore writes a small store of some kind.
func mkstore(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "mkstore KIND FILE")
	kind, ok := kinds[args[0]]
	if !ok {
		ts.Fatalf("unknown kind %q", args[0])
	}
	schema, tickers := kind()
	w, err := writer.Create(ts.MkAbs(args[1]), schema, labels[args[0]])
	ts.Check(err)
	for _, t := range tickers {
		ts.Check(w.Begin(t.name))
		row := 0
		for _, b := range append(slices.Clone(t.breaks), len(t.times)) {
			cells := []writer.Cells{}
			for g, c := range t.cells {
				width := len(schema.Groups[g].Columns)
				if c.I64 != nil {
					cells = append(cells, writer.Cells{I64: c.I64[row:b]})
				} else {
					cells = append(cells, writer.Cells{F32: c.F32[row*width : b*width]})
				}
			}
			ts.Check(w.Append(t.times[row:b], cells))
			if b < len(t.times) {
				ts.Check(w.Break(len(schema.Breaks) - 1))
			}
			row = b
		}
	}
	ts.Check(w.Finish(context.Background(), []byte(`{"made":"by a test"}`)))
}

// rows is one ticker of a test store; breaks are those of its last break set.
type rows struct {
	name   string
	times  []int64
	cells  []writer.Cells
	breaks []int
}

const day = 86400

var kinds = map[string]func() (*format.Schema, []rows){
	"daily":  daily,
	"odd":    odd,
	"big":    big,
	"empty":  func() (*format.Schema, []rows) { return oneColumn(format.Second, "x"), nil },
	"future": func() (*format.Schema, []rows) { return ticks(format.Second, 1<<61, 1) },
	"nanos":  func() (*format.Schema, []rows) { return ticks(format.Nanosecond, -1, 1) },
	"steps":  func() (*format.Schema, []rows) { return ticks(format.Second, 2000, 1) },
	"labels": labelled,
}

// labels are the options of kinds that have categories or attributes.
var labels = map[string]*writer.Options{"labels": {
	Categories: map[string][]string{"sector": {"Energy", "IT\x1b"}, "none": {}},
	Attributes: []writer.Attribute{
		{Name: "name", Texts: map[string]string{"A": "Alpha"}}, {Name: "beta", Numbers: map[string]float64{"B": 1.5}},
	},
}}

// labelled has the tickers A and B of two rows.
func labelled() (*format.Schema, []rows) {
	schema := oneColumn(format.Second, "x")
	schema.Groups[0].Columns = append(schema.Groups[0].Columns, format.Column{Name: "sector"}, format.Column{Name: "none"})
	none := format.Missing()
	cells := []writer.Cells{{F32: []float32{1, 1, none, 2, 0, none}}}
	return schema, []rows{{name: "A", times: []int64{0, day}, cells: cells}, {name: "B", times: []int64{0, day}, cells: cells}}
}

// daily has the tickers AAPL of 30 rows, BRK.B of 25 and NONE without rows; from row 20 on 4 days later.
func daily() (*format.Schema, []rows) {
	schema := &format.Schema{
		Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "open"}, {Name: "close"}, {Name: "volume"}}},
			{Name: "targets", DType: format.Float32, Columns: []format.Column{{Name: "ret", ReachKind: format.ReachRows, Reach: 1}}},
		},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 3 * day}},
	}
	var out []rows
	for _, t := range []struct {
		name string
		n    int
	}{{"AAPL", 30}, {"BRK.B", 25}, {"NONE", 0}} {
		r := rows{name: t.name, cells: make([]writer.Cells, 2)}
		for i := range t.n {
			at := int64(18262+i) * day // 2020-01-01
			if i >= 20 {
				at += 4 * day
			}
			r.times = append(r.times, at)
			x := float32(i)
			r.cells[0].F32 = append(r.cells[0].F32, 100+x/8, 1e-7*x, 1e6*x)
			r.cells[1].F32 = append(r.cells[1].F32, -x/3)
		}
		if t.n == 25 {
			r.cells[0].F32[3*5] = format.Missing()
			r.cells[1].F32[24] = format.Missing()
		}
		out = append(out, r)
	}
	return schema, out
}

// odd has names and columns that are hard to write, label ends, a mask and breaks of its own.
func odd() (*format.Schema, []rows) {
	schema := &format.Schema{
		Unit: format.Millisecond, Zone: "America/New_York",
		Groups: []format.Group{
			{Name: "../up", DType: format.Float32, Columns: []format.Column{{Name: "ticker"}, {Name: "a,b"}}},
			{Name: "CON", DType: format.Float32, Columns: []format.Column{{Name: "time", ReachKind: format.ReachColumn, Reach: 3}}},
			{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "end", Role: format.LabelEnd}}},
			{Name: "ENDS", DType: format.Float32, Columns: []format.Column{{Name: "ok", Role: format.Mask}}},
		},
		Breaks: []format.BreakSet{{Name: "session", Kind: format.BreakColumn, Source: "Session"}, {Name: "mine", Kind: format.BreakGiven}},
	}
	var out []rows
	for _, name := range []string{" blank ", "000001", "NA", "a,b", "esc\x1b[31m", "q\"q", "zwölf"} {
		r := rows{name: name, cells: make([]writer.Cells, 4), breaks: []int{2}}
		for i := range 4 {
			r.times = append(r.times, 1577973600500+int64(i)*60000) // 2020-01-02T14:00:00.500Z
			r.cells[0].F32 = append(r.cells[0].F32, float32(i), -0.5)
			r.cells[1].F32 = append(r.cells[1].F32, float32(-i))
			r.cells[2].I64 = append(r.cells[2].I64, []int64{format.NoTime, 1577973900500}[i%2])
			r.cells[3].F32 = append(r.cells[3].F32, 1)
		}
		r.cells[3].F32[1] = format.Missing()
		out = append(out, r)
	}
	return schema, out
}

// big has one ticker of more rows than pipes and buffers hold.
func big() (*format.Schema, []rows) {
	r := rows{name: "BIG", cells: make([]writer.Cells, 1)}
	for i := range 300_000 {
		r.times = append(r.times, int64(i)*60)
		r.cells[0].F32 = append(r.cells[0].F32, float32(i)/7)
	}
	return oneColumn(format.Second, "x"), []rows{r}
}

func oneColumn(unit format.Unit, name string) *format.Schema {
	return &format.Schema{Unit: unit, Groups: []format.Group{
		{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: name}}},
	}}
}

// ticks has one ticker of three rows from a time on.
func ticks(unit format.Unit, first, step int64) (*format.Schema, []rows) {
	r := rows{name: "T", times: []int64{first, first + step, first + 2*step}, cells: []writer.Cells{{F32: []float32{1, 2, 3}}}}
	return oneColumn(unit, "x"), []rows{r}
}
