package pilot

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/pilot/process"
)

// relayFile is where a relay notes its port, below the site's root.
const relayFile = "relay.json"

// Relay connects nodes of the site with corrald, which has started it and is at the other end of stdin and stdout.
// Below root it keeps the number of its port. It ends with its input.
func Relay(ctx context.Context, lg *slog.Logger, root string, stdin io.Reader, stdout io.WriteCloser) error {
	if _, err := os.Stat(root); err != nil { // a site that is gone, or was never set up, gets no folder from us
		return err
	}
	return relay.Run(ctx, lg, filepath.Join(root, relayFile), stdio{stdin, stdout})
}

// poolThrough returns what connects an attempt with its HTCondor pool through a relay.
func poolThrough(tag, token string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		return relay.Dial(ctx, address, relay.NewRequest(relay.Pool, tag, token))
	}
}

// serveRelayed joins an HTCondor pool whose place on this node a relay takes.
func serveRelayed(ctx context.Context, lg *slog.Logger, o process.Order, drain <-chan struct{}, out *process.Speaker) process.Word {
	f, err := relay.Forward(lg, o.Condor.Pool, o.Condor.Through, relay.NewRequest(relay.Pool, o.Tag, o.Token))
	if err != nil {
		return process.Word{Left: process.LeftUnable, Error: err.Error()}
	}
	defer f.Close()
	return serveCondor(ctx, lg, o, drain, out)
}

// stdio is a process's input and output as one.
type stdio struct {
	io.Reader
	io.WriteCloser
}
