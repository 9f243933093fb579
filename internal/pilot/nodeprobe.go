package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/pool"
)

// probeNode looks at this node as a pilot would, with all of corrald's addresses at the same time.
func probeNode(ctx context.Context, p order.NodeProbe, out io.Writer) error {
	n := order.Node{Libc: node.Libc()}
	n.Host, _ = os.Hostname() // for people
	errs := make([]error, len(p.Addresses))
	var dials sync.WaitGroup
	for i, address := range p.Addresses {
		dials.Go(func() { errs[i] = pool.Reach(ctx, address, p.CertDigest) })
	}
	dials.Wait()
	for i, err := range errs {
		if err == nil {
			n.Reached = p.Addresses[i]
			break
		}
	}
	if n.Reached == "" {
		n.Trouble = "corrald has no address"
		if err := errors.Join(errs...); err != nil {
			n.Trouble = err.Error()
		}
	}
	n.Now = time.Now().UTC()
	return json.NewEncoder(out).Encode(n)
}
