package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wstore/wstore/internal/mmapfile"
)

// group is a control group with limited memory.
type group struct{ dir string }

// newGroup makes a group below this process's own, of whichever version the machine has. Version 2 allows that only in
// groups without processes, so there the groups above are tried too.
func newGroup(limit int64) (*group, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var failed error
	try := func(dir, file string) *group {
		g := &group{filepath.Join(dir, fmt.Sprintf("wstore-beyondram-%d", os.Getpid()))}
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			failed = errors.Join(failed, err)
			return nil
		}
		if err := os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
			failed = errors.Join(failed, err)
			g.remove()
			return nil
		}
		return g
	}
	for _, line := range strings.Split(strings.TrimSpace(string(own)), "\n") {
		fields := strings.SplitN(line, ":", 3) // number, controllers, path
		if len(fields) != 3 {
			continue
		}
		if strings.Contains(","+fields[1]+",", ",memory,") {
			if g := try(filepath.Join("/sys/fs/cgroup/memory", fields[2]), "memory.limit_in_bytes"); g != nil {
				return g, nil
			}
		}
		if fields[1] == "" {
			if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
				continue
			}
			for path := filepath.Clean(fields[2]); ; path = filepath.Dir(path) {
				if g := try(filepath.Join("/sys/fs/cgroup", path), "memory.max"); g != nil {
					return g, nil
				}
				if path == "/" || path == "." {
					break
				}
			}
		}
	}
	return nil, errors.Join(errors.New("no control group of memory"), failed)
}

func (g *group) add(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

func (g *group) remove() {
	if err := os.Remove(g.dir); err != nil {
		fmt.Fprintln(os.Stderr, "beyondram: remove the control group by hand:", err)
	}
}

// drop drops the file from the page cache, and reports if some of it stays.
func drop(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil { // dirty pages stay
		return err
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return err
	}
	const samples = 1000
	stay := 0
	for k := range int64(samples) {
		if mmapfile.Resident(f, k*info.Size()/samples) {
			stay++
		}
	}
	if stay > samples/100 {
		return fmt.Errorf("%d of %d sampled pages stay", stay, samples)
	}
	return nil
}

// readAhead tells how far the system reads ahead on the file's device.
func readAhead(path string) string {
	const unknown = "read_ahead_kb unknown"
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return unknown
	}
	device := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	for _, queue := range []string{"queue", "../queue", "bdi"} { // of a partition that of its disk
		if b, err := os.ReadFile(filepath.Join(device, queue, "read_ahead_kb")); err == nil {
			return "read_ahead_kb " + strings.TrimSpace(string(b))
		}
	}
	return unknown
}
