// Package rig is what the benchmarks have in common: how their commands begin and end, and a Corral that is theirs
// alone and leaves nothing behind. A Service is reached through the API, where the client must not be part of what is
// measured; a User has folders of its own and calls the programs that everybody calls.
package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main carries out the command line of this process, and ends it with the exit code that execute returns. What
// interrupts the process ends ctx, so that a benchmark takes down what it has put up.
func Main(execute func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes of benchmarks.
const (
	Failed = 1
	Misuse = 2 // of flags or arguments
)

// Code prints an error behind the benchmark's name, if there is one, and returns the exit code.
func Code(stderr io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return Failed
}
