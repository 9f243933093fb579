// Package cli is the command line of corral: sites, glideins, clusters and runs from the shell.
//
// Each noun has a file, such as glidein.go, with its type (glideinVerbs), the flags of each verb and the columns of its
// list; larger verbs have files of their own, such as glidein_create.go, and the help is in glidein_help.txt. All nouns
// share the patterns of verbs (verb.go), flags (flags.go), the connection to corrald (connection.go), listings
// (listing.go) and the printer (printer.go). An action only parses its arguments, calls corrald through package api and
// prints the answer.
//
// Data is written to stdout, everything else to stderr. With -o json the data is the unchanged REST type, so that
// scripts receive the documented format of the interface. The exit code is determined by the kind of the error,
// according to the table of package api; a command that a signal ends exits with 128 plus the number of the signal, as
// shells expect.
//
// Package progress shows what a command is waiting for, package plot draws pictures, package report writes reports, and
// package forecast computes forecasts in the client without corrald.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// Main runs the command line with which the program was started, and returns its exit code. SIGINT, SIGTERM and SIGHUP
// end a command in an orderly way; a second signal ends the program at once.
func Main() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a command is short-lived, and a list of 100,000 tasks takes megabytes
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := (<-signals).(syscall.Signal)
		cancel(signalError(s))
		// A script that also received the first signal may have passed it on to this program; such a copy does not
		// count as the second signal.
		time.AfterFunc(time.Second, func() { signal.Stop(signals) })
	}()
	return run(ctx, os.Args, stdio{os.Stdin, os.Stdout, os.Stderr})
}
