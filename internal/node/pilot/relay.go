package pilot

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/broker/relay"
)

// relayFile is the file below the site's root in which a relay stores its port.
const relayFile = "relay.json"

// Relay connects nodes of the site with corrald, which has started it on the head node and is connected to stdin and
// stdout. It stores its port number below root, so that the next relay listens on the same port. It ends when its input
// ends.
func Relay(ctx context.Context, lg *slog.Logger, root string, stdin io.Reader, stdout io.WriteCloser) error {
	if _, err := os.Stat(root); err != nil { // no folder is created for a site that was removed or never set up
		return err
	}
	return relay.Run(ctx, lg, filepath.Join(root, relayFile), struct {
		io.Reader
		io.WriteCloser
	}{stdin, stdout})
}
