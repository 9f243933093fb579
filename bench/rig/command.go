// Package rig contains code shared by the benchmarks: how their commands begin and end, and a private Corral that
// leaves nothing behind. A Service is used through the API, for measurements that must not include the client; a User
// has its own folders and calls the same programs as any user.
package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main executes the command line of this process, and exits with the code that execute returns. A signal that
// interrupts the process ends ctx, so that a benchmark stops what it has started.
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

// Code prints an error after the benchmark's name, if there is one, and returns the exit code.
func Code(stderr io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return Failed
}
