package gridsite

import (
	"context"
	"io"

	"github.com/corral-pilot/corral"
)

// A Stager manages the shared files of jobs below the root of one site: programs, packages, and tokens that are
// replaced while a job waits. All names are relative to the root. A *Refused is a definite refusal that remains until
// the site changes, for example because someone else owns the root or the disk is full.
type Stager interface {
	// Check refuses a root that is, or is below, another owner's root, or that has content without our mark. It leaves
	// no files at the site.
	Check(ctx context.Context, c Claim) error

	// Boot installs a program, whose content open returns, unless it exists. It claims the root first; if Boot is
	// refused, it removes all content from a root that was not ours before.
	Boot(ctx context.Context, program string, c Claim, open func() (io.ReadCloser, error)) error

	// Push copies the archive of a package, unless the site has the file named by unless, and returns the URL under
	// which jobs at the site find the archive.
	Push(ctx context.Context, name, unless string, open func() (io.ReadCloser, error)) (url string, err error)

	// Replace replaces a file of a job that has not ended.
	Replace(ctx context.Context, tag, name string, content []byte) error

	// Sweep removes the root with its content. A root that was not ours before is removed only if it has our mark.
	Sweep(ctx context.Context, before bool) error
}

// A Claim names the owner of a root, and specifies whether the root was claimed before.
type Claim struct {
	Owner  string // an id unique to this corrald, a blank, and a text for people
	Before bool   // if true, the root need not be marked
}

// A Host represents the machine through which a site is reached.
type Host interface {
	// Platform returns the platform for which worker packages must be built.
	Platform(ctx context.Context) (corral.Platform, error)

	// Has reports whether the site has a file of this name below its root; a program must be executable.
	Has(ctx context.Context, name string, program bool) (bool, error)

	// Sees reports whether jobs at the site can read this file of this machine under the same path.
	Sees(ctx context.Context, path string) (bool, error)

	// Ping sends a minimal request. It fails if the site cannot be reached.
	Ping(ctx context.Context) error

	// Close closes the connection to the site, after the last use of its batch systems.
	Close() error
}

// A Head is the part of a site other than its batch system.
type Head interface {
	Host
	Stager
}

// A Runner is a Host that runs programs with live input and output. A site whose Host is not a Runner cannot have a
// relay.
type Runner interface {
	Start(ctx context.Context, program string, args ...string) (Stream, error)
}

// An Expander is a Host that can read variables of the user's login environment at the site.
type Expander interface {
	// Expand returns the value of a variable, or "" if it is not set.
	Expand(ctx context.Context, variable string) (string, error)
}
