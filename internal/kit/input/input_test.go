package input_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// A file that is not a regular one is refused immediately, by name. The writer of a pipe would detect that the pipe was
// opened.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err := errors.Join(err, syscall.Mkfifo(pipe, 0o600), os.Symlink("/dev/zero", link)); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, what := range map[string]string{
		dir: "a directory", pipe: "a named pipe", socket: "a socket", "/dev/zero": "a device", link: "a device",
	} {
		want := "open " + name + ": it is " + what + ", not a regular file"
		if _, err := input.Open(name); err == nil || err.Error() != want {
			t.Errorf("Open = %v, want %s", err, want)
		}
		if _, err := input.ReadFile(name, 10); err == nil || err.Error() != want {
			t.Errorf("ReadFile = %v, want %s", err, want)
		}
	}
	if _, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("opening the pipe to write: %v, want an error because no process reads it", err)
	}
	if _, err := input.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of what is not there = %v", err)
	}
}

func TestReadFileStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	holes, short := filepath.Join(dir, "holes"), filepath.Join(dir, "short")
	err := os.WriteFile(short, []byte("1234567890"), 0o600)
	if err := errors.Join(err, os.WriteFile(holes, nil, 0o600), os.Truncate(holes, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if b, err := input.ReadFile(short, 10); string(b) != "1234567890" || err != nil {
		t.Errorf("ReadFile of ten bytes = %q, %v", b, err)
	}
	var tooLong *input.TooLongError
	if _, err := input.ReadFile(short, 9); !errors.As(err, &tooLong) || !strings.HasSuffix(err.Error(), "short: longer than 9 bytes") {
		t.Errorf("ReadFile of ten bytes of nine = %v", err)
	}
	if _, err := input.ReadFile(holes, 64<<20); !errors.As(err, &tooLong) || !strings.HasSuffix(err.Error(), "holes: longer than 64 MiB") {
		t.Errorf("ReadFile of a terabyte = %v", err)
	}
	if b, err := input.ReadFile("/proc/self/status", 1<<20); len(b) == 0 || err != nil { // its size is 0
		t.Errorf("ReadFile of a file of /proc = %d bytes, %v", len(b), err)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1000)
	for limit, whole := range map[int64]bool{999: false, 1000: true, 1001: true, 0: false} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			b, err := input.ReadAll(r, limit)
			var tooLong *input.TooLongError
			if want := min(limit, 1000); int64(len(b)) != want || errors.As(err, &tooLong) == whole || whole && err != nil {
				t.Errorf("limit %d: %d bytes, %v", limit, len(b), err)
			}
		}
	}
	if err := iotest.TestReader(input.Limit(t.Context(), strings.NewReader(text), 1000), []byte(text)); err != nil {
		t.Error(err)
	}
}

var errStop = errors.New("stop")

func TestEndOfContextEndsReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	endless := input.Limit(ctx, zeros(func() { cancel(errStop) }), 1<<60)
	if _, err := io.Copy(io.Discard, endless); !errors.Is(err, errStop) {
		t.Errorf("reading on: %v", err)
	}
	silent, w := io.Pipe()
	defer w.Close()
	ctx, cancel = context.WithCancelCause(t.Context())
	begun := zeros(func() { cancel(errStop) })
	all := func() ([]byte, error) { return io.ReadAll(io.MultiReader(io.LimitReader(begun, 10), silent)) }
	if _, err := input.Await(ctx, all); !errors.Is(err, errStop) {
		t.Errorf("waiting: %v", err)
	}
	if n, err := input.Await(t.Context(), func() (int, error) { return 7, errStop }); n != 7 || !errors.Is(err, errStop) {
		t.Errorf("Await = %d, %v", n, err)
	}
}

// zeros is an endless reader of zeros that calls its function at each read.
type zeros func()

func (z zeros) Read(p []byte) (int, error) { z(); clear(p); return len(p), nil }
