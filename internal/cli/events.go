package cli

// The command events prints changes as they occur. corrald sends the current state of each changed object, which is
// printed on one line.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// eventsCommand prints changes until it is interrupted, even across restarts of corrald.
func (p *printer) eventsCommand() *cli.Command {
	return &cli.Command{
		Name: "events", Category: resources,
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "after", Usage: "start after the event with this `ID` (default: now)"},
		},
		Action: func(c *cli.Context) error {
			cl, err := connect(c)
			if err != nil {
				return err
			}
			return p.followEvents(c.Context, cl, c.Int64("after"))
		},
	}
}

// followEvents prints events until ctx ends. After a lost connection it continues from the last event.
func (p *printer) followEvents(ctx context.Context, cl *api.Client, after int64) error {
	const again = time.Second
	for lost := false; ; {
		err := cl.Events(ctx, after, func(e api.Event) error {
			if e.ID != 0 {
				after = e.ID
			}
			return p.event(e)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (corral.KindOf(err) != corral.Unavailable || errors.Is(err, errNotPrinted)):
			return err
		case err != nil && !lost:
			p.say("corrald does not answer; events continue once it does: %v", err)
		}
		lost = err != nil
		if !retry.For(ctx, again) {
			return ctx.Err()
		}
	}
}

var errNotPrinted = errors.New("printing an event")

// event prints an event on one line: the object and its new state, or JSON.
func (p *printer) event(e api.Event) error {
	if !p.forPeople() {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, string(line))
		return stdoutError(err)
	}
	var of struct {
		ID        int64
		Name      string
		State     string
		Reason    string
		UpdatedAt time.Time `json:"updated_at"`
		Tasks     *corral.RunTasks
	}
	if e.Kind == api.EventReady || e.Kind == api.EventReset {
		return nil
	}
	if err := json.Unmarshal(e.Data, &of); err != nil {
		return corral.Errorf(corral.Internal, "reading an event: %w", err)
	}
	line := fmt.Sprintf("%s  %s %d  %s", whenExactly(of.UpdatedAt), e.Kind, of.ID, of.State)
	if of.Name != "" {
		line = fmt.Sprintf("%s  %s %s  %s", whenExactly(of.UpdatedAt), e.Kind, of.Name, of.State)
	}
	if of.Tasks != nil {
		line += fmt.Sprintf("  %d of %d tasks done", of.Tasks.Done, of.Tasks.Total)
	}
	if of.Reason != "" {
		line += "  " + of.Reason
	}
	_, err := fmt.Fprintln(p.out, readable(line))
	return stdoutError(err)
}

// stdoutError marks an error as an error of stdout, after which the connection is not retried.
func stdoutError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotPrinted, err)
}
