package pilot

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/broker/relay"
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

// stdio is a process's input and output as one.
type stdio struct {
	io.Reader
	io.WriteCloser
}
