package mmapfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapped maps a file with the given bytes; it is unmapped when the test ends.
func mapped(t *testing.T, content []byte) (*Map, *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	_, err = f.Write(content)
	require.NoError(t, err)
	m, err := Open(f, int64(len(content)))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, f.Close())
	})
	return m, f
}

func TestMapOutlivesFileAndName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed there")
	}
	content := bytes.Repeat([]byte("wstore"), 5000)
	m, f := mapped(t, content)
	require.NoError(t, os.Remove(f.Name()))
	require.Equal(t, content, m.Bytes())
}

func TestOpenRefuses(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	_, err = Open(f, 0)
	require.Error(t, err)
	_, err = Open(f, -1)
	require.Error(t, err)
	_, err = f.WriteString("some")
	require.NoError(t, err)
	_, err = Open(f, 3)
	require.ErrorContains(t, err, "changed from 3 to 4")
	if uint64(^uint(0)) == 1<<32-1 {
		_, err = Open(f, 1<<33)
		require.ErrorIs(t, err, ErrTooLarge)
	}
}

func TestGuardReportsTheFaultingByte(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file can't be truncated there")
	}
	page := os.Getpagesize()
	m, f := mapped(t, make([]byte, 4*page))
	require.NoError(t, f.Truncate(int64(2*page)))
	b := m.Bytes()
	require.NoError(t, Guard(b, func() error { _ = bytes.Count(b[:2*page], []byte{1}); return nil }))

	var fault *FaultError
	err := Guard(b, func() error { sum += b[2*page+17]; return nil })
	require.ErrorAs(t, err, &fault)
	require.EqualValues(t, 2*page+17, fault.Offset)
	require.ErrorContains(t, err, "truncated")

	into := make([]byte, page)
	err = Guard(b, func() error { copy(into, b[page+5:]); copy(into, b[2*page+1:]); return nil })
	require.ErrorAs(t, err, &fault)
	require.GreaterOrEqual(t, fault.Offset, int64(2*page))

	// Guards can be nested: the inner one has its own mapping, and passes on what is not in it.
	other, _ := mapped(t, make([]byte, page))
	err = Guard(b, func() error {
		return Guard(other.Bytes(), func() error { sum += b[3*page]; return nil })
	})
	require.ErrorAs(t, err, &fault)
	require.EqualValues(t, 3*page, fault.Offset)
}

var sum byte

func TestGuardPassesOn(t *testing.T) {
	m, _ := mapped(t, make([]byte, 10))
	mine := errors.New("mine")
	require.ErrorIs(t, Guard(m.Bytes(), func() error { return mine }), mine)
	require.PanicsWithValue(t, "mine", func() { _ = Guard(m.Bytes(), func() error { panic("mine") }) })
	require.Panics(t, func() {
		var none []int
		_ = Guard(m.Bytes(), func() error { sum += byte(none[len(m.Bytes())]); return nil })
	})
	require.Panics(t, func() {
		var none *Map
		_ = Guard(m.Bytes(), func() error { sum += none.m[0]; return nil })
	}, "a nil pointer is no fault of the mapping")
	require.NoError(t, Guard(nil, func() error { return nil }))
}
