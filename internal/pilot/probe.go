package pilot

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
)

const (
	maxRequest  = 64 << 10 // bytes of JSON
	defaultHold = corral.Seconds(30 * time.Second)
	maxHold     = corral.Seconds(5 * time.Minute)
)

// Probe measures the network of the machine that it runs on, as the broker.Probe says that it reads from
// request, and writes to out what broker.Attend reads.
func Probe(ctx context.Context, request io.Reader, out io.Writer) error {
	p := broker.Probe{Hold: defaultHold}
	dec := json.NewDecoder(io.LimitReader(request, maxRequest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return corral.Errorf(corral.Invalid, "reading what to probe: %w", err)
	}
	p.Ports, _ = parsePorts(os.Getenv(portsVariable)) // pilots go on without those that they cannot read
	p.Hold = max(0, min(p.Hold, maxHold))
	return p.Run(ctx, out)
}
