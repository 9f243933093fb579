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

// Relay connects nodes of the site with corrald, which has started it on the head node and is at the other end of stdin
// and stdout. It keeps the number of its port below root, so that the next relay listens at the same one. It ends with
// its input.
func Relay(ctx context.Context, lg *slog.Logger, root string, stdin io.Reader, stdout io.WriteCloser) error {
	if _, err := os.Stat(root); err != nil { // a site that is gone, or was never set up, gets no folder
		return err
	}
	return relay.Run(ctx, lg, filepath.Join(root, relayFile), struct {
		io.Reader
		io.WriteCloser
	}{stdin, stdout})
}
