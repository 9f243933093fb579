package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	hostRoute = 30 * time.Second // for reaching corrald: the first node has just reached it
	routeTry  = 5 * time.Second
)

// check tests the conditions that the worker needs on this node: the job's directory, disk space, memory, and a route
// to its cluster. The error names the condition that is not met; no worker is then ever started on the node.
func (h *host) check(ctx context.Context) error {
	o := &h.order
	if err := checkVisible(o.Dir, o.Holder); err != nil {
		return fmt.Errorf("the job's directory %s is not visible on this node: %w", o.Dir, err)
	}
	if err := os.MkdirAll(o.Scratch, 0o700); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	if err := nodecheck.Check(o.Scratch, o.MemoryMiB); err != nil {
		return err
	}
	if o.Join != nil {
		return h.join(ctx)
	}
	return checkRoute(ctx, o.Addresses, min(hostRoute, o.EndsIn/4))
}

// checkVisible checks that dir is the first node's directory, by the lease held in it: two nodes may each have a local
// directory of the same name, and files that a worker leaves in the wrong one are lost.
func checkVisible(dir, holderID string) error {
	b, err := os.ReadFile(filepath.Join(dir, leaseDir, holderFile))
	if err != nil {
		return err
	}
	var there holder
	if json.Unmarshal(b, &there) != nil || there.ID != holderID {
		return fmt.Errorf("it belongs to another pilot: %s", describeHolder(filepath.Join(dir, leaseDir)))
	}
	return nil
}

// checkRoute connects to one of corrald's addresses and closes the connection, which shows whether the network lets
// workers on this node connect; the worker itself authenticates later. It retries until within is over: a node's
// network may become available after the job has started.
func checkRoute(ctx context.Context, addresses []string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := errors.New("corrald has no address")
		for _, address := range addresses {
			if err = dialAddress(ctx, address); err == nil {
				return nil
			}
		}
		if !retry.For(ctx, redialGap) {
			return fmt.Errorf("no route to corrald at %s: %w", strings.Join(addresses, ", "), err)
		}
	}
}

// dialAddress connects to an address of the worker port, or to a relay that leads to it.
func dialAddress(ctx context.Context, address string) error {
	d := net.Dialer{Timeout: routeTry}
	network, where := "tcp", strings.TrimPrefix(strings.TrimPrefix(address, "tls:"), "relay:")
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, where = "unix", path
	}
	conn, err := d.DialContext(ctx, network, where)
	if err != nil {
		return err
	}
	return conn.Close()
}

// join measures how the HTCondor pool reaches this node, which may differ between nodes: the first node may have an
// address that the other nodes do not have. The measurements are recorded in the report's log.
func (h *host) join(ctx context.Context) error {
	var ask broker.CallBack
	if h.order.Linked {
		ask = h.callBack
	}
	choice, err := condorworker.FindWay(ctx, &h.order.Order, ask)
	if err == nil {
		h.pipe.Say(process.Word{Note: "broker: " + choice.Reason + "; " + condorworker.Measured(choice)})
	}
	return err
}

// callBack is a broker.CallBack: it asks corrald through the supervisor, one request at a time. A late answer is
// detected by the nonce of an earlier request.
func (h *host) callBack(ctx context.Context, addresses []string, nonce string) (string, error) {
	h.pipe.Say(process.Word{CallBack: &process.CallBack{Addresses: addresses, Nonce: nonce}})
	for {
		select {
		case a := <-h.called:
			if a.Nonce != nonce {
				continue
			}
			if a.Kind != "" {
				return "", corral.Errorf(a.Kind, "%s", a.Reason)
			}
			return a.Reached, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
