package ftp_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/corral-pilot/corral/staging"
	"github.com/corral-pilot/corral/staging/ftp"
)

// A Fetcher opens URLs of a further scheme by the scheme's opener.
func ExampleOpen() {
	fetcher := staging.NewFetcher(slog.Default())
	fetcher.Open["ftp"] = ftp.Open
	signed, err := fetcher.Index(context.Background(), "ftp://mirror.example.org/pub/corral")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range signed {
		fmt.Println(s.Name, s.Digest)
	}
}
