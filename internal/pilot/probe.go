package pilot

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
)

const (
	maxRequest  = 64 << 10 // bytes of JSON
	defaultHold = corral.Seconds(30 * time.Second)
	maxHold     = corral.Seconds(5 * time.Minute)
)

// A probe asks one of two things.
type probe struct {
	broker.Probe                  // the way to an HTCondor pool
	Node         *order.NodeProbe `json:"node,omitempty"` // the machine itself, and the way to corrald
}

// Probe looks at the machine that it runs on, as the probe says that it reads from request. It writes to out an
// order.Node, or what broker.Attend reads.
func Probe(ctx context.Context, request io.Reader, out io.Writer) error {
	p := probe{Probe: broker.Probe{Hold: defaultHold}}
	dec := json.NewDecoder(io.LimitReader(request, maxRequest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return corral.Errorf(corral.Invalid, "reading what to probe: %w", err)
	}
	if p.Node != nil {
		return probeNode(ctx, *p.Node, out)
	}
	p.Ports, _ = condorworker.SitePorts() // pilots go on without a range that they cannot read
	p.Hold = max(0, min(p.Hold, maxHold))
	return p.Run(ctx, out)
}
