package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// fileBytes is the size of the copied file.
const fileBytes = 64 << 20

// deeds are the subjects that this program itself runs.
var deeds = map[string]func(args []string) error{"copy": copyFile, "calls": makeCalls, "compute": compute}

// copyFile copies the first file to the second in pieces of the given size, with read(2) and write(2).
func copyFile(args []string) error {
	piece, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	in, err := os.Open(args[0])
	if err != nil {
		return err
	}
	out, err := os.Create(args[1])
	if err != nil {
		return err
	}
	buffer := make([]byte, piece)
	for {
		n, err := in.Read(buffer)
		if err == io.EOF {
			return errors.Join(in.Close(), out.Close())
		}
		if err == nil {
			_, err = out.Write(buffer[:n])
		}
		if err != nil {
			return err
		}
	}
}

// makeCalls makes the given number of system calls that do nothing.
func makeCalls(args []string) error {
	n, err := strconv.Atoi(args[0])
	for range n {
		syscall.Getppid()
	}
	return err
}

// compute uses the given number of milliseconds of CPU time.
func compute(args []string) error {
	ms, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return err
		}
		if used.Utime.Nano()+used.Stime.Nano() >= int64(ms)*int64(time.Millisecond) {
			return nil
		}
		for range 1_000_000 {
			// Go compiles the loop although it does nothing.
		}
	}
}
