package engine

import (
	"context"
	"fmt"
	"path"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// probeScript makes and removes a directory in the nearest ancestor of $1 that exists.
const probeScript = `
d=$1
while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done
[ -d "$d" ] || { echo "$d is not a directory" >&2; exit 1; }
t=$(mktemp -d "$d/.corral-XXXXXX") && rmdir -- "$t"
`

// CheckSite reports why a site cannot be used: it is not reached, or its root is not writable. It
// leaves nothing there.
func CheckSite(ctx context.Context, site corral.Site) error {
	conn, err := gridsite.Dial(ctx, site.Contact)
	if err != nil {
		return err
	}
	defer conn.Close()
	res, err := conn.Run(ctx, gridsite.Command{Argv: []string{"sh", "-c", probeScript, "probe", path.Clean(site.Root)}})
	if err != nil {
		return corral.ErrorAt(corral.Unavailable, "contact", "reaching %s: %w", site.Contact, err)
	}
	if res.Exit != 0 {
		return corral.ErrorAt(corral.Invalid, "root", "%s is not writable at %s: %s", site.Root, site.Contact, lastLine(append(res.Stdout, res.Stderr...)))
	}
	return nil
}

// JobFile returns a function that reads a file of a job's directory at its site.
func JobFile(db *store.DB) func(context.Context, corral.Job, string) ([]byte, error) {
	return func(ctx context.Context, job corral.Job, name string) ([]byte, error) {
		var site corral.Site
		err := db.View(ctx, func(tx *store.Tx) (err error) {
			site, err = tx.Site(job.Site)
			return err
		})
		if err != nil {
			return nil, err
		}
		conn, batch, err := Open(ctx, site)
		if err != nil {
			return nil, fmt.Errorf("reaching site %s: %w", site.Name, err)
		}
		defer conn.Close()
		return batch.Read(ctx, job.Tag, name)
	}
}
