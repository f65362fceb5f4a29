package reader_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

// TestClose checks that Close does not wait, that everything new fails, and that what is held goes on.
func TestClose(t *testing.T) {
	path := save(t, t.TempDir(), steps(50, 50).Build())
	for how, s := range everyWay(t, path) {
		w := windows(t, s, reader.Query{Lookback: 5})
		v, err := w.View()
		require.NoError(t, err)
		x, _ := v.At(3)
		want := append([]float32(nil), x...)

		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "a second call does nothing")
		_, viewErr := w.View()
		_, storeViewErr := s.View()
		_, windowsErr := s.Windows(reader.Query{Lookback: 5})
		_, timeErr := s.Time(0, 0)
		for _, err := range []error{
			viewErr, storeViewErr, windowsErr, timeErr, s.Verify(context.Background()),
			w.Gather([]int{0}, make([]float32, 15), make([]float32, 1)),
		} {
			require.ErrorIs(t, err, reader.ErrClosed, how)
			require.ErrorContains(t, err, s.Path())
		}
		if how != "bytes" && how != "bytes read" {
			_, err = s.Stale()
			require.ErrorIs(t, err, reader.ErrClosed)
		}
		require.Equal(t, 90, w.Len(), "arithmetic goes on")
		require.Equal(t, []string{"T000", "T001"}, s.Tickers())

		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		require.ErrorIs(t, s.CloseWait(ctx), context.DeadlineExceeded, "a view is held")
		cancel()
		again, _ := v.At(3)
		require.Equal(t, want, again)
		require.Equal(t, want, x)
		series, err := v.Series(1, 0)
		require.NoError(t, err)
		require.Equal(t, float32(1000), series[0])

		waited := make(chan error)
		go func() { waited <- s.CloseWait(context.Background()) }()
		v.Release()
		v.Release()
		require.NoError(t, <-waited)
		require.NoError(t, s.CloseWait(ctx), "it is gone: the context does not matter")
	}
}

// TestCloseWhileInUse closes under goroutines that gather, view and query.
func TestCloseWhileInUse(t *testing.T) {
	path := save(t, t.TempDir(), steps(300, 300).Build())
	for _, a := range accesses {
		for range 20 {
			s, err := reader.Open(path, &reader.Options{Access: a})
			require.NoError(t, err)
			w := windows(t, s, reader.Query{Inputs: []string{"z", "x"}, Targets: []string{"ret"}, Lookback: 9})
			var rounds atomic.Int64
			var wg sync.WaitGroup
			fails := make(chan error, 8)
			for k := range 4 {
				wg.Go(func() {
					x, y := make([]float32, 18*64), make([]float32, 64)
					ids := make([]int, 64)
					for i := range ids {
						ids[i] = (k*61 + i*7) % w.Len()
					}
					for {
						rounds.Add(1)
						err := w.Gather(ids, x, y)
						if err == nil && (x[0] != float32(1000*w.Locate(ids[0]).Ticker+10*int(w.Locate(ids[0]).First)+2)) {
							err = errors.New("wrong cell")
						}
						var v *reader.View
						if err == nil {
							v, err = w.View()
						}
						if err == nil {
							x, _ := v.At(ids[1])
							if len(x) != 27 {
								err = errors.New("wrong view")
							}
							v.Release()
						}
						if err == nil {
							_, err = s.Time(1, 7)
						}
						if err != nil {
							fails <- err
							return
						}
					}
				})
			}
			for rounds.Load() < 8 {
				runtime.Gosched()
			}
			require.NoError(t, s.CloseWait(context.Background()))
			wg.Wait()
			close(fails)
			for err := range fails {
				require.ErrorIs(t, err, reader.ErrClosed)
			}
		}
	}
}

func TestStale(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be replaced there")
	}
	b := steps(20).Build()
	stale := func(s *reader.Store) bool {
		is, err := s.Stale()
		require.NoError(t, err)
		return is
	}
	for what, change := range map[string]func(path string){
		"replaced": func(path string) { rename(t, path, b) },
		"removed":  func(path string) { require.NoError(t, os.Remove(path)) },
		"written":  func(path string) { require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0))) },
		"longer":   func(path string) { require.NoError(t, os.Truncate(path, int64(len(b))+1)) },
		"shorter":  func(path string) { require.NoError(t, os.Truncate(path, int64(len(b))-1)) },
	} {
		for _, a := range accesses {
			path := save(t, t.TempDir(), b)
			s, err := reader.Open(path, &reader.Options{Access: a})
			require.NoError(t, err)
			require.False(t, stale(s), what)
			change(path)
			require.True(t, stale(s), what)
			if what == "shorter" { // then nothing more is read of a mapping: the end of its page would be zeros
				if a == reader.Map {
					_, err := s.Windows(reader.Query{Inputs: []string{"x"}, Targets: []string{}, Lookback: 2})
					require.ErrorIs(t, err, format.Truncated)
				}
				require.NoError(t, s.Close())
				continue
			}
			w := windows(t, s, reader.Query{Inputs: []string{"x"}, Targets: []string{}, Lookback: 2})
			x := make([]float32, 2)
			require.NoError(t, w.Gather([]int{3}, x, nil), "it reads what it opened")
			require.Equal(t, []float32{30, 40}, x)
			require.NoError(t, s.Close())
		}
	}
	s, err := reader.OpenBytes(b, nil)
	require.NoError(t, err)
	require.False(t, stale(s))
}

// TestStaleByAnotherFolder opens by a relative name, and goes elsewhere.
func TestStaleByAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	path := save(t, dir, steps(3).Build())
	t.Chdir(dir)
	s, err := reader.Open(filepath.Base(path), nil)
	require.NoError(t, err)
	defer s.Close()
	t.Chdir(t.TempDir())
	stale, err := s.Stale()
	require.NoError(t, err)
	require.False(t, stale)
}

// TestTruncatedWhileMapped truncates a mapped file in a process of its own: every way of reading it must give an error
// that names the file and the byte, on whatever goroutine, and the process must live.
func TestTruncatedWhileMapped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file can't be truncated there")
	}
	if !inChild(t) {
		return
	}

	runtime.GOMAXPROCS(4)
	const rows = 40_000 // the calendar takes 320,000 bytes, the first block stands behind it
	path := save(t, t.TempDir(), steps(rows, rows).Build())
	open := func(a reader.Access) (*reader.Store, *reader.Windows) {
		s, err := reader.Open(path, &reader.Options{Access: a})
		require.NoError(t, err)
		return s, windows(t, s, reader.Query{Inputs: []string{"x", "z"}, Lookback: 60})
	}
	s, w := open(reader.Map)
	direct, dw := open(reader.Read)
	const size = 8192 + 65536
	require.NoError(t, os.Truncate(path, size))

	faulty := func(err error, what string) {
		t.Helper()
		require.ErrorIs(t, err, format.ErrCorrupt, what)
		require.ErrorIs(t, err, format.Truncated, what)
		require.ErrorContains(t, err, path, what)
		var c *format.CorruptError
		require.ErrorAs(t, err, &c)
		require.GreaterOrEqual(t, c.Offset, int64(size), what)
		require.ErrorContains(t, err, "byte", what)
	}
	for _, n := range []int{1, 5000} { // on this goroutine, and on several
		ids := make([]int, n)
		for k := range ids {
			ids[k] = k * 13 % w.Len()
		}
		x, y := make([]float32, n*120), make([]float32, n)
		faulty(w.Gather(ids, x, y), "gather")
		faulty(dw.Gather(ids, x, y), "gather by reading")
	}
	v, err := w.View()
	require.NoError(t, err)
	defer v.Release()
	faulty(v.Guard(func() error {
		x, _ := v.At(100)
		sum += x[0]
		return nil
	}), "view")
	faulty(v.Guard(func() error {
		times, err := v.Times(0)
		sum += float32(times[len(times)-1])
		return err
	}), "times")
	mine := errors.New("mine")
	require.ErrorIs(t, v.Guard(func() error { return mine }), mine)
	_, err = s.Time(0, rows-1)
	faulty(err, "time")
	_, err = s.Time(0, 3)
	faulty(err, "a file that was cut is not read any more")
	_, err = direct.Time(0, rows-1)
	faulty(err, "time by reading")
	for _, store := range []*reader.Store{s, direct} {
		_, err = store.Windows(reader.Query{Lookback: 60, From: time.Unix(39_000, 0)})
		faulty(err, "query")
		_, err = store.Windows(reader.Query{Lookback: 60, At: []time.Time{time.Unix(39_000, 0)}})
		faulty(err, "query at")
		require.ErrorIs(t, store.Verify(context.Background()), format.Truncated)
		stale, err := store.Stale()
		require.NoError(t, err)
		require.True(t, stale)
	}
	dv, err := dw.View()
	require.NoError(t, err)
	require.NoError(t, dv.Err())
	for i := range dv.All() { // ends at the first window that can't be read
		require.Less(t, i, dw.Len()-1)
	}
	faulty(dv.Err(), "view by reading")
	x, y := dv.At(dw.Len() - 1)
	require.True(t, x == nil && y == nil, "no data are made up")
	dv.Release()
	v.Release()
	require.NoError(t, s.CloseWait(context.Background()))
	require.NoError(t, direct.CloseWait(context.Background()))
	t.Log("the process lives")
}

// TestReplacedWhileMapped goes on with the old file.
func TestReplacedWhileMapped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be replaced there")
	}
	path := save(t, t.TempDir(), steps(500).Build())
	s, err := reader.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	rename(t, path, steps(3).Build())
	require.NoError(t, s.Verify(context.Background()))
	fresh, err := reader.Open(path, nil)
	require.NoError(t, err)
	defer fresh.Close()
	require.EqualValues(t, 500, s.Rows(0))
	require.EqualValues(t, 3, fresh.Rows(0))
}
