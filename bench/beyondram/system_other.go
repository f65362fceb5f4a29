//go:build !linux

package main

import "errors"

var errLinux = errors.New("this is for Linux only")

// group is a control group with limited memory.
type group struct{}

func newGroup(int64) (*group, error) { return nil, errLinux }

func (*group) add(int) error { return errLinux }

func (*group) remove() {}

func drop(string) error { return errLinux }

func readAhead(string) string { return "read_ahead_kb unknown" }
