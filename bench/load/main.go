// Command load measures how a central corrald bears many users: clients that each wait for one glidein, others that
// turn the pages of lists, and all of them asking for more glideins, over TLS, with tokens, on a machine that the
// generator shares with it.
//
// It uses a private corrald below a temporary directory, and leaves nothing behind. The glideins are wanted tomorrow,
// so that no pilot runs: what is measured is the service.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
)

// A plan says how much load there is, and where.
type plan struct {
	users, glideins, watchers int
	creates, lists, reads     int // each second
	lasts                     time.Duration
	dir, bin                  string
}

func main() { rig.Main(execute) }

// execute reads the flags, measures and prints the table. It returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var p plan
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&p.users, "users", 10, "who share all that follows")
	f.IntVar(&p.glideins, "glideins", 10_000, "in the store before it begins")
	f.IntVar(&p.watchers, "watchers", 1000, "connections, each of which waits for one glidein")
	f.IntVar(&p.creates, "creates", 200, "glideins that are asked for each second")
	f.IntVar(&p.lists, "lists", 20, "pages of 100 glideins that are read each second")
	f.IntVar(&p.reads, "reads", 50, "glideins that are read each second")
	f.DurationVar(&p.lasts, "lasts", time.Minute, "how long the load lasts")
	f.StringVar(&p.dir, "dir", os.TempDir(), "`directory` to work below")
	f.StringVar(&p.bin, "bin", "bin", "`directory` with corral, corrald and pilot")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has said why
	}
	if f.NArg() > 0 || min(p.users, p.glideins, p.watchers, p.creates, p.lists, p.reads) < 1 || p.lasts < time.Second {
		fmt.Fprintln(stderr, "usage: load [flags]; numbers are at least 1, and it lasts for a second")
		return rig.Misuse
	}
	return rig.Code(stderr, "load", p.run(ctx, stdout, stderr))
}

// run puts up a corrald and measures.
func (p plan) run(ctx context.Context, stdout, stderr io.Writer) error {
	return rig.Alone(p.bin, p.dir, "l", func(u *rig.User) error {
		s := &stand{User: u}
		if err := s.start(ctx, p.users); err != nil {
			return err
		}
		from := time.Now()
		if err := s.fill(ctx, p.glideins); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "load: %d glideins in %s\n", p.glideins, time.Since(from).Round(time.Millisecond))
		m, err := p.measure(ctx, s)
		if err != nil {
			return err
		}
		if m.again, err = s.restart(ctx); err == nil {
			_, err = io.WriteString(stdout, m.markdown(p))
		}
		return err
	})
}
