package staging_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// A mirror serves a package by http, and a site installs it below its root.
func Example() {
	dir, err := os.MkdirTemp("", "staging")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	mirror := staging.Mirror{Dir: filepath.Join(dir, "mirror")}
	header := packages.Header{What: "hello", Version: "1.0"}
	header.Platform = corral.Platform{OS: "linux", Arch: "x86_64", Libc: packages.Static}
	p, err := mirror.Build(header, fstest.MapFS{"hello": {Data: []byte("hello\n")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(mirror)
	defer server.Close()

	url, err := staging.URLBelow(server.URL, p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fetcher := staging.NewFetcher(slog.New(slog.DiscardHandler))
	source := staging.Source{Package: p, URLs: []string{url}}
	installed, tries, err := fetcher.Install(context.Background(), filepath.Join(dir, "site"), source)
	if err != nil {
		fmt.Println(err)
		return
	}
	content, err := os.ReadFile(filepath.Join(installed, "hello"))
	fmt.Printf("tries: %d, content: %q, %v\n", len(tries), content, err)
	// Output:
	// tries: 1, content: "hello\n", <nil>
}
