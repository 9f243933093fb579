package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/corral-pilot/corral"
)

// pollInterval is the interval of reads of a probe's output. A probe takes seconds, and a person waits for it.
const pollInterval = 200 * time.Millisecond // the site may be remote

// A Probe measures a node without a glidein, and therefore without a link to corrald. It writes its results as two
// lines of JSON, which corrald reads through the site's transport; corrald dials the node itself (see Attend).
type Probe struct {
	Collector string   `json:"collector"` // as in Config, like the next three
	CCB       []string `json:"ccb,omitempty"`
	Schedd    string   `json:"schedd,omitempty"`
	Streams   bool     `json:"streams,omitempty"`

	Ports [2]uint16      `json:"-"`      // as in Config; known to the pilot that runs the probe
	Hold  corral.Seconds `json:"hold_s"` // how long the node can be dialled after the measurement
}

// A probeLine is one line of a probe's output.
type probeLine struct {
	Invitation *invitation `json:"invitation,omitempty"` // on the first line
	Findings   *Findings   `json:"findings,omitempty"`   // on the last line; without the measurement of the pool's side
}

// Run writes the measurements to out and keeps the node's listeners open.
func (p Probe) Run(ctx context.Context, out io.Writer) error {
	c := Config{Collector: p.Collector, CCB: p.CCB, Schedd: p.Schedd, Streams: p.Streams, Ports: p.Ports}
	if err := c.check(); err != nil {
		return err
	}
	inv := invite(ctx, c)
	defer inv.close()
	lines := json.NewEncoder(out)
	if err := lines.Encode(probeLine{Invitation: inv}); err != nil {
		return err
	}
	f, err := measure(ctx, c)
	if err != nil {
		return err
	}
	if err := lines.Encode(probeLine{Findings: &f}); err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(p.Hold)):
	case <-ctx.Done():
	}
	return nil
}

// Attend is the pool's side of a Probe: it dials the node when the probe's output has the invitation, and returns all
// findings as soon as they are complete. output returns the probe's output so far, in which other lines are skipped; it
// is polled until ctx ends. The caller ends the probe.
func Attend(ctx context.Context, output func(context.Context) ([]byte, error)) (Findings, error) {
	// The invitation precedes the findings, so that both sides measure concurrently.
	first, err := await(ctx, output, func(l probeLine) bool { return l.Invitation != nil })
	if err != nil {
		return Findings{}, err
	}
	node := Node{Addresses: first.Invitation.Addresses, Trouble: first.Invitation.Trouble}
	if len(node.Addresses) > 0 {
		node = node.called(Reach(ctx, node.Addresses, first.Invitation.Nonce))
	}
	last, err := await(ctx, output, func(l probeLine) bool { return l.Findings != nil })
	if err != nil {
		return Findings{}, err
	}
	f := *last.Findings
	f.Node = node
	return f, nil
}

// await returns the first complete line of a probe that satisfies is. Batch systems add lines of their own to a job's
// output; these are not JSON of this form and are skipped.
func await(
	ctx context.Context, output func(context.Context) ([]byte, error), is func(probeLine) bool,
) (probeLine, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		text, err := output(ctx)
		if err != nil {
			return probeLine{}, err
		}
		for one := range bytes.Lines(text) {
			var l probeLine
			if bytes.HasSuffix(one, []byte("\n")) && json.Unmarshal(one, &l) == nil && is(l) {
				return l, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return probeLine{}, corral.Errorf(corral.Timeout, "the probe did not report its measurements in time")
		}
	}
}
