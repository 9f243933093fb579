package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
)

const (
	maxRequest  = 64 << 10 // bytes of JSON
	defaultHold = corral.Seconds(30 * time.Second)
	maxHold     = corral.Seconds(5 * time.Minute)
)

// A probe requests one of two measurements.
type probe struct {
	broker.Probe                     // the way to an HTCondor pool
	Node         *jobfiles.NodeProbe `json:"node,omitempty"` // the machine itself, and the route to corrald
}

// Probe examines the machine that it runs on, as specified by the probe that it reads from request. It writes to out a
// jobfiles.Node, or the input of broker.Attend. Corrald runs Probe at a site before any pilot, to determine the
// conditions that pilots would find there.
func Probe(ctx context.Context, request io.Reader, out io.Writer) error {
	p := probe{Probe: broker.Probe{Hold: defaultHold}}
	dec := json.NewDecoder(io.LimitReader(request, maxRequest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return corral.Errorf(corral.Invalid, "reading the probe: %w", err)
	}
	if p.Node != nil {
		return probeNode(ctx, *p.Node, out)
	}
	p.Ports, _ = condorworker.SitePorts() // pilots ignore a range that they cannot parse
	p.Hold = max(0, min(p.Hold, maxHold))
	return p.Run(ctx, out)
}

// probeNode examines this node as a pilot would. It tries all of corrald's addresses concurrently, because each address
// that a firewall blocks costs a full timeout, and reports the first address in the list that answered.
func probeNode(ctx context.Context, p jobfiles.NodeProbe, out io.Writer) error {
	n := jobfiles.Node{Libc: nodecheck.Libc()}
	n.Host, _ = os.Hostname() // for display
	errs := make([]error, len(p.Addresses))
	var dials sync.WaitGroup
	for i, address := range p.Addresses {
		dials.Go(func() { errs[i] = wire.Reach(ctx, address, p.CertDigest) })
	}
	dials.Wait()
	if i := slices.Index(errs, nil); i >= 0 {
		n.Reached = p.Addresses[i]
	} else if err := errors.Join(errs...); err != nil {
		n.Trouble = err.Error()
	} else {
		n.Trouble = "corrald has no address"
	}
	n.Now = time.Now().UTC()
	return json.NewEncoder(out).Encode(n)
}
