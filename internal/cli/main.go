// Package cli is the command line of corral: sites, glideins, clusters and runs from the shell.
//
// Each noun has a file, glidein.go for example, with its type (glideinVerbs), the flags of each verb and the columns of
// its list; larger verbs have files of their own, glidein_create.go say, and glidein_help.txt has the help. All share
// the shapes of verbs (verb.go), flags (flags.go), the connection to corrald (connection.go), listings (listing.go) and
// the printer (printer.go). An action only parses its arguments, calls corrald through package api and prints the
// answer.
//
// Data goes to stdout, everything else to stderr. With -o json the data is the REST type unchanged, so that a script
// sees what the interface documents. The exit code follows from the kind of the error, by the table of package api; a
// command that a signal ends exits with 128 and the number of the signal, as shells expect.
//
// Package progress shows what a command waits for, package plot draws, package report writes reports, and package
// forecast computes what the client works out without corrald.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// Main runs the command line that the program was started with, and returns its exit code. SIGINT, SIGTERM and SIGHUP
// end a command in order; a second one ends the program at once.
func Main() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a command lives for moments, and a list of 100,000 tasks takes megabytes
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := (<-signals).(syscall.Signal)
		cancel(signalError(s))
		// A script that got the first signal, too, may have passed it on: that one does not count as the second.
		time.AfterFunc(time.Second, func() { signal.Stop(signals) })
	}()
	return run(ctx, os.Args, stdio{os.Stdin, os.Stdout, os.Stderr})
}
