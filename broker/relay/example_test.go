package relay_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
)

// The three sides in one process: in production the pipe is the stdio of a command that corrald starts through ssh.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "relay")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	head, corrald := net.Pipe()
	go relay.Run(ctx, slog.New(slog.DiscardHandler), filepath.Join(dir, "port"), head)

	session, err := relay.Open(ctx, corrald)
	if err != nil {
		fmt.Println(err)
		return
	}
	digest := sha256.Sum256([]byte("the token of pilot-1"))
	go session.Serve(ctx, func(ctx context.Context, r relay.Request) (net.Conn, error) {
		if r.Tag != "pilot-1" || !r.Proves(hex.EncodeToString(digest[:])) {
			return nil, corral.Errorf(corral.Unauthenticated, "attempt %s is unknown", r.Tag)
		}
		ours, theirs := net.Pipe() // in production a connection to the worker port
		go func() { fmt.Fprint(theirs, "welcome"); theirs.Close() }()
		return ours, nil
	})

	for _, token := range []string{"guessed", "the token of pilot-1"} {
		nc, err := relay.Dial(ctx, session.Addresses[0], relay.NewRequest(relay.Workers, "pilot-1", token))
		if err != nil {
			fmt.Println(err)
			continue
		}
		answer, err := io.ReadAll(nc)
		fmt.Printf("%s %v\n", answer, err)
		nc.Close()
	}
	// Output:
	// attempt pilot-1 is unknown
	// welcome <nil>
}
