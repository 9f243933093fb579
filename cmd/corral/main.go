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
		signal.Stop(signals) // a second one ends the program at once
		cancel(signalled(s))
	}()
	os.Exit(run(ctx, os.Args, stdio{os.Stdin, os.Stdout, os.Stderr}))
}
