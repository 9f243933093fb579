// Command corral is the client of corrald: sites, glideins, clusters and runs from the shell.
//
// Data goes to stdout, everything else to stderr; exit codes are those of package api.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a command lives for moments, and a list of 100,000 tasks takes megabytes
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := (<-signals).(syscall.Signal)
		cancel(signalled(s))
		// A second one ends the program at once, unless a script that got the first one, too, has only passed it on.
		time.AfterFunc(time.Second, func() { signal.Stop(signals) })
	}()
	os.Exit(run(ctx, os.Args, stdio{os.Stdin, os.Stdout, os.Stderr}))
}
