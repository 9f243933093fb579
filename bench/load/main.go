// Command load measures how a central corrald handles many users: clients that each wait for one glidein, others that
// page through lists, and all of them requesting more glideins, over TLS, with tokens, on the machine that also runs
// the generator.
//
// It uses a private corrald below a temporary directory, and leaves nothing behind. The glideins are requested for the
// next day, so that no pilot runs: only the service is measured.
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

// A plan specifies the load and its location.
type plan struct {
	users, glideins, watchers int
	creates, lists, reads     int // per second
	lasts                     time.Duration
	dir, bin                  string
}

func main() { rig.Main(execute) }

// execute reads the flags, measures and prints the table. It returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var p plan
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&p.users, "users", 10, "users who share the load")
	f.IntVar(&p.glideins, "glideins", 10_000, "glideins in the store at the beginning")
	f.IntVar(&p.watchers, "watchers", 1000, "connections that each wait for one glidein")
	f.IntVar(&p.creates, "creates", 200, "glideins requested per second")
	f.IntVar(&p.lists, "lists", 20, "pages of 100 glideins read per second")
	f.IntVar(&p.reads, "reads", 50, "glideins read per second")
	f.DurationVar(&p.lasts, "lasts", time.Minute, "how long the load lasts")
	f.StringVar(&p.dir, "dir", os.TempDir(), "parent `directory` of the working directory")
	f.StringVar(&p.bin, "bin", "bin", "`directory` with corral, corrald and pilot")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has printed the reason
	}
	if f.NArg() > 0 || min(p.users, p.glideins, p.watchers, p.creates, p.lists, p.reads) < 1 || p.lasts < time.Second {
		fmt.Fprintln(stderr, "usage: load [flags]; numbers are at least 1, and the load lasts at least a second")
		return rig.Misuse
	}
	return rig.Code(stderr, "load", p.run(ctx, stdout, stderr))
}

// run starts a corrald and measures.
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
