package gridsite

import (
	"context"
	"io"

	"github.com/corral-pilot/corral"
)

// A Stager keeps, below the root of one site, what jobs there need beside their own files: programs, packages, and
// tokens that are replaced while a job waits. All names are relative to the root. A *Refused is a definite no, which
// only a change at the site can lift: a root that is somebody else's, or a disk that is full.
type Stager interface {
	// Check refuses a root that is, or is in, that of another owner, or that has something in it and is not marked as
	// ours. It leaves nothing there.
	Check(ctx context.Context, c Claim) error

	// Boot brings a program, which open opens, unless it is there. It claims the root first; if it is refused, nothing
	// is left of a root that was not ours before.
	Boot(ctx context.Context, program string, c Claim, open func() (io.ReadCloser, error)) error

	// Push brings the archive of a package, unless the site has the file that unless names, and returns the URL under
	// which jobs there find it.
	Push(ctx context.Context, name, unless string, open func() (io.ReadCloser, error)) (url string, err error)

	// Replace replaces a file of a job that has not ended.
	Replace(ctx context.Context, tag, name string, content []byte) error

	// Sweep removes the root with all that is in it. One that was not ours before is removed only if it has our mark.
	Sweep(ctx context.Context, before bool) error
}

// A Claim says whose a root is to be, and whether it was before.
type Claim struct {
	Owner  string // something that no other corrald has, a blank, and words for people
	Before bool   // then it need not be marked
}

// A Host answers for the machine through which a site is reached.
type Host interface {
	// Platform says what worker packages must be made for.
	Platform(ctx context.Context) (corral.Platform, error)

	// Has reports whether the site has a file of this name below its root; a program is one that may be run.
	Has(ctx context.Context, name string, program bool) (bool, error)

	// Sees reports whether jobs at the site can read this very file of the machine that we run on.
	Sees(ctx context.Context, path string) (bool, error)

	// Ping asks for next to nothing. It fails if the site is not reached.
	Ping(ctx context.Context) error

	// Close ends the way to the site, after the last use of its batch systems.
	Close() error
}

// A Head is what of a site is not its batch system.
type Head interface {
	Host
	Stager
}

// A Runner is a Host that runs programs of ours while we speak with them. A site without one can have no relay.
type Runner interface {
	Start(ctx context.Context, program string, args ...string) (Stream, error)
}

// An Expander is a Host that knows variables of the user's login there.
type Expander interface {
	// Expand returns the value of a variable; empty if it is not set.
	Expand(ctx context.Context, variable string) (string, error)
}
