// Command corral is the client of corrald: sites, glideins, clusters and runs from the shell.
//
// Data goes to stdout, everything else to stderr; exit codes are those of package api.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args, stdio{os.Stdin, os.Stdout, os.Stderr}))
}
