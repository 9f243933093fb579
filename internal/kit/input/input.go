// Package input reads what others wrote: files that a person or a request names, what a site or a mirror sends. Such a
// thing may be a device, a pipe without a writer, a terabyte of holes, or a megabyte that unpacks to a terabyte.
//
// Memory and time are the two things that a hostile input takes, so there are two kinds of functions: ReadFile,
// ReadAll and Limit bound bytes, and Open, Limit and Await bound time.
//
// Its one invariant: what is read through it ends, after a limit in bytes, with its context, or because it is not a
// regular file, and says so in words that a person can be shown. Whose limit it is decides what it is.
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

// A TooLongError says that there is more than may be read.
type TooLongError struct{ Limit int64 } // in bytes

func (e *TooLongError) Error() string { return "longer than " + Size(e.Limit) }

// A NotRegularError says that something is no regular file.
type NotRegularError struct{ What string } // what it is instead

func (e *NotRegularError) Error() string { return "it is " + e.What + ", not a regular file" }

// Size writes a limit for people.
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

// Open opens a regular file. Anything else is refused by name, at once, and left as it was: a device may do something
// when it is opened, and to open a pipe wakes a program that waits to write to it. The error is an *fs.PathError,
// with a *NotRegularError in it for what is none.
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

// Regular returns a *NotRegularError, in an *fs.PathError, for what is not a regular file.
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

// ReadFile is os.ReadFile of a regular file of at most limit bytes. A longer one is a *TooLongError in an
// *fs.PathError; one whose size says so is not read at all.
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
	if err == nil { // files of /proc have no size, and others grow
		b, err = ReadAll(f, limit)
	}
	var tooLong *TooLongError
	if errors.As(err, &tooLong) {
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b, err
}

// ReadAll is io.ReadAll of at most limit bytes. If there is more, the error is a *TooLongError.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(Limit(context.Background(), r, limit))
}

// Limit returns a reader of r's bytes. It fails with ctx's cause once ctx has ended, and with a *TooLongError where r
// goes on behind limit bytes. A read of r that blocks is not interrupted: see Await.
func Limit(ctx context.Context, r io.Reader, limit int64) io.Reader {
	return &limited{ctx: ctx, r: r, left: limit, limit: limit}
}

// A limited reader has read everything that it may when left is 0; left is negative once more came.
type limited struct {
	ctx   context.Context
	r     io.Reader
	left  int64
	limit int64
}

// Read asks for one byte more than may be read: if that comes too, there is more.
func (l *limited) Read(p []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, context.Cause(l.ctx)
	}
	if l.left < 0 {
		return 0, &TooLongError{l.limit}
	}
	if int64(len(p)) > l.left+1 { // one more shows that there is more
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, &TooLongError{l.limit}
	}
	return n, err
}

// Await returns what read returns, or ctx's cause if ctx ends first: read is then left to itself. It is for programs
// that end with ctx, and what may never come, such as the bytes of a pipe or a terminal.
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
