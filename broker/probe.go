package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/corral-pilot/corral"
)

// pollInterval bounds how often a site is asked. A probe is over in seconds, and a person waits for it.
const pollInterval = 200 * time.Millisecond // of a probe's output, at a site that may be far

// A Probe measures a node on which no glidein runs, so that there is no link to corrald either. It writes what it has
// to say as two lines of JSON; corrald reads them as the site's transport allows, and dials the node by itself (see
// Attend).
type Probe struct {
	Collector string   `json:"collector"` // this and the next three as in Config
	CCB       []string `json:"ccb,omitempty"`
	Schedd    string   `json:"schedd,omitempty"`
	Streams   bool     `json:"streams,omitempty"`

	Ports [2]uint16      `json:"-"`      // as in Config; the pilot that runs the probe knows them
	Hold  corral.Seconds `json:"hold_s"` // how long the node can still be dialled once it has measured
}

// A probeLine is one line of a probe's output.
type probeLine struct {
	Invitation *invitation `json:"invitation,omitempty"` // the first
	Findings   *Findings   `json:"findings,omitempty"`   // the last; what the pool's side measured is not in it
}

// Run writes what it measures to out and holds the node's listeners open.
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
	f, err := Measure(ctx, c)
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

// Attend is the pool's side of a Probe: it dials the node when the probe's output invites it, and returns
// all findings as soon as there are. output returns what the probe has written so far, of which lines of
// others are skipped; it is asked every little while until ctx ends. The caller ends the probe.
func Attend(ctx context.Context, output func(context.Context) ([]byte, error)) (Findings, error) {
	// The invitation comes before the findings, so that both sides measure at the same time.
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

// await returns the first whole line of a probe that is the one. Batch systems put lines of their own into a job's
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
			return probeLine{}, corral.Errorf(corral.Timeout, "the probe did not say what it measured in time")
		}
	}
}
