package gridsite

import (
	"context"
	"io"
	"io/fs"

	"github.com/corral-pilot/corral/internal/kit/fault"
)

// Every request to a site with a Conn is made through one of these functions, so that tests can inject a fault at the
// request's point.

// Run runs a command, like conn.Run. In a test, a fault can be injected at the point at; other programs may call
// conn.Run directly.
func Run(ctx context.Context, conn Conn, at fault.Point, cmd Command) (Result, error) {
	return fault.At(ctx, at, func(ctx context.Context) (Result, error) { return conn.Run(ctx, cmd) })
}

// A File is a file to be written by Put.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content io.Reader
}

// Put writes a file, like conn.Put; see Run for at.
func Put(ctx context.Context, conn Conn, at fault.Point, f File) error {
	return fault.Do(ctx, at, func(ctx context.Context) error { return conn.Put(ctx, f.Path, f.Mode, f.Content) })
}

// Start starts a command with live input and output, like conn.Stream, and has a point of its own; see Run.
func Start(ctx context.Context, conn Streamer, cmd Command) (Stream, error) {
	return fault.At(ctx, fault.SiteRelay, func(ctx context.Context) (Stream, error) { return conn.Stream(ctx, cmd) })
}
