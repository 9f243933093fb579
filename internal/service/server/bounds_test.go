package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A source that is not a file, or exceeds the size of a package, is refused before any of it is read.
func TestImportTakesFilesOnly(t *testing.T) {
	t.Parallel()
	f := start(t)
	pipe, long := filepath.Join(f.shelf.dir, "pipe"), filepath.Join(f.shelf.dir, "long")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<40); err != nil {
		t.Fatal(err)
	}
	for source, says := range map[string]string{
		"/dev/zero": "it is a device, not a regular file",
		pipe:        "it is a named pipe, not a regular file",
		long:        "bad package: longer than 2 GiB",
	} {
		for _, in := range []api.NewPackage{{Source: source, Sign: true}, {Source: "file://" + source, Sign: true},
			{Source: source}, {Source: source, Signature: must(f.shelf.friend.Sign(f.shelf.offered).Encode())(t)}} {
			_, err := f.ImportPackage(t.Context(), in, "")
			wantKind(t, source, err, corral.Invalid, "source")
			if err != nil && !strings.Contains(err.Error(), source+": "+says) {
				t.Errorf("import of %s: %v, want %s", source, err, says)
			}
		}
	}
	if left, _ := filepath.Glob(f.shelf.dir + "/cache/mirror/*"); len(left) != 0 {
		t.Errorf("left in the mirror: %v", left)
	}
}

// An import ends when its client disconnects or corrald stops.
func TestImportEndsWithItsClientAndCorrald(t *testing.T) {
	t.Parallel()
	f := start(t)
	asked := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		case <-r.Context().Done(): // the request was repeated after a long silence
		}
		<-r.Context().Done()
	}))
	defer silent.Close() // it waits for the end of all requests
	in := api.NewPackage{Source: silent.URL + "/x.tar.gz", Signature: must(f.shelf.friend.Sign(f.shelf.offered).Encode())(t)}
	ctx, leave := context.WithCancel(t.Context())
	for _, end := range []func(){leave, f.server.Stop} {
		answer := make(chan error)
		go func() {
			_, err := f.ImportPackage(ctx, in, "")
			answer <- err
		}()
		<-asked
		end()
		if err := <-answer; err == nil {
			t.Error("the import succeeded")
		} else if ctx.Err() == nil && (corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), "corrald is stopping")) {
			t.Errorf("the import of a corrald that stops: %v", err)
		}
		ctx = t.Context()
	}
	if left, _ := filepath.Glob(f.shelf.dir + "/cache/mirror/.import-*"); len(left) != 0 {
		t.Errorf("left in the mirror: %v", left)
	}
}
