// Package input reads data from untrusted sources: files named by a person or a request, and data sent by a site or a
// mirror. Such a file may be a device, a pipe without a writer, a terabyte of holes, or a megabyte that unpacks to a
// terabyte.
//
// Hostile input consumes memory and time, so there are two kinds of functions: ReadFile, ReadAll and Limit limit bytes,
// and Open, Limit and Await limit time.
//
// The invariant: every read through this package ends, at a limit in bytes, with its context, or because the file is
// not a regular one, with an error that can be shown to users. The caller chooses the limit.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A TooLongError reports that the input is longer than permitted.
type TooLongError struct{ Limit int64 } // in bytes

func (e *TooLongError) Error() string { return "longer than " + Size(e.Limit) }

// A NotRegularError reports that a file is not a regular file.
type NotRegularError struct{ What string } // the kind of file

func (e *NotRegularError) Error() string { return "it is " + e.What + ", not a regular file" }

// Size formats a limit for display.
func Size(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Open opens a regular file. Any other file is refused at once, by its name, without opening it: opening may trigger a
// device, and opening a pipe wakes a program that waits to write to it. The error is an *fs.PathError, which wraps a
// *NotRegularError if the file is not regular.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err == nil {
		err = Regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = Regular(name, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Regular returns a *NotRegularError, wrapped in an *fs.PathError, if the file is not regular.
func Regular(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "something else"
	switch mode := info.Mode(); {
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return &fs.PathError{Op: "open", Path: name, Err: &NotRegularError{what}}
}

// ReadFile is os.ReadFile for a regular file of at most limit bytes. For a longer file the error is a *TooLongError
// wrapped in an *fs.PathError; if the size of the file already exceeds the limit, the file is not read.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		err = &TooLongError{limit}
	}
	var b []byte
	if err == nil { // files in /proc have no size, and others may grow
		b, err = ReadAll(f, limit)
	}
	var tooLong *TooLongError
	if errors.As(err, &tooLong) {
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b, err
}

// ReadAll is io.ReadAll for at most limit bytes. If r has more bytes, the error is a *TooLongError.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(Limit(context.Background(), r, limit))
}

// Limit returns a reader of r's bytes. It fails with ctx's cause when ctx has ended, and with a *TooLongError if r has
// more than limit bytes. A read of r that blocks is not interrupted: see Await.
func Limit(ctx context.Context, r io.Reader, limit int64) io.Reader {
	return &limited{ctx: ctx, r: r, left: limit, limit: limit}
}

// A limited reader has reached its limit when left is 0; left is negative if more bytes followed.
type limited struct {
	ctx   context.Context
	r     io.Reader
	left  int64
	limit int64
}

// Read requests one byte more than the limit permits: if this byte arrives, the input is too long.
func (l *limited) Read(p []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, context.Cause(l.ctx)
	}
	if l.left < 0 {
		return 0, &TooLongError{l.limit}
	}
	if int64(len(p)) > l.left+1 { // one more shows that the input is longer
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, &TooLongError{l.limit}
	}
	return n, err
}

// Await returns the result of read, or ctx's cause if ctx ends first: read then continues in the background. It is
// meant for programs that end with ctx, and for data that may never arrive, such as the bytes of a pipe or a terminal.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := read()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
