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
	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
	"github.com/corral-pilot/corral/internal/pilot/process"
)

const (
	hostRoute = 30 * time.Second // for corrald to be reached, at most: the first node has just reached it
	routeTry  = 5 * time.Second
)

// check looks at what the worker needs of this node.
func (h *host) check(ctx context.Context) error {
	o := &h.order
	if err := checkVisible(o.Dir, o.Holder); err != nil {
		return fmt.Errorf("the job's directory %s is not visible there: %w", o.Dir, err)
	}
	if err := os.MkdirAll(o.Scratch, 0o700); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	if err := node.Check(o.Scratch, o.MemoryMiB); err != nil {
		return err
	}
	if o.Condor != nil {
		return h.join(ctx)
	}
	return checkRoute(ctx, o.Addresses, min(hostRoute, o.EndsIn/4))
}

// checkVisible checks that dir is the first node's, by the lease that is held there.
func checkVisible(dir, holderID string) error {
	b, err := os.ReadFile(filepath.Join(dir, leaseDir, "holder.json"))
	if err != nil {
		return err
	}
	var there holder
	if err := json.Unmarshal(b, &there); err != nil || there.ID != holderID {
		other := errors.New(describeHolder(filepath.Join(dir, leaseDir)))
		return fmt.Errorf("another pilot's is: %w", errors.Join(err, other))
	}
	return nil
}

// checkRoute connects to one of corrald's addresses and hangs up; within bounds how often it tries.
func checkRoute(ctx context.Context, addresses []string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	again := time.NewTicker(redialGap)
	defer again.Stop()
	for {
		err := errors.New("it has no address")
		for _, address := range addresses {
			if err = dialAddress(ctx, address); err == nil {
				return nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("no route to corrald at %s: %w", strings.Join(addresses, ", "), err)
		}
	}
}

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

// join finds out how the HTCondor pool reaches this node.
func (h *host) join(ctx context.Context) error {
	var ask broker.CallBack
	if h.order.Linked {
		ask = h.called.ask
	}
	choice, err := condorworker.FindWay(ctx, &h.order.Order, ask)
	if err == nil {
		h.pipe.Say(process.Word{Note: "broker: " + choice.Reason + "; " + condorworker.Measured(choice)})
	}
	return err
}

// callBacks are a host's questions whether corrald reaches it, one after the other.
type callBacks struct {
	say     func(process.Word)
	answers chan process.CalledBack
}

// ask is a broker.CallBack.
func (c *callBacks) ask(ctx context.Context, addresses []string, nonce string) (string, error) {
	c.say(process.Word{CallBack: &process.CallBack{Addresses: addresses, Nonce: nonce}})
	for {
		select {
		case a := <-c.answers:
			if a.Nonce != nonce {
				continue // too late
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

// answer passes an answer to who asked; one that nobody waits for any more is dropped.
func (c *callBacks) answer(a process.CalledBack) {
	select {
	case <-c.answers:
	default:
	}
	c.answers <- a
}
