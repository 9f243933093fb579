package engine

import (
	"context"
	"fmt"
	"path"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// probeScript refuses a root $1 with something in it that is not marked as ours, and makes and removes a
// directory in the nearest of its ancestors that exists.
const probeScript = `
d=$1
while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done
[ -d "$d" ] || { echo "$d is not a directory" >&2; exit 1; }
if [ "$d" = "$1" ] && [ ! -e "$d/` + rootMark + `" ] && [ -n "$(ls -A -- "$d")" ]; then
	echo "it is not empty, and removing the site would remove all that is in it" >&2
	exit 1
fi
t=$(mktemp -d "$d/.corral-XXXXXX") && rmdir -- "$t"
`

// CheckSite reports why a site cannot be used: it is not reached, or its root is not writable, or has
// files of others in it. It leaves nothing there.
func (r *Reach) CheckSite(ctx context.Context, site corral.Site, acceptHostKey bool) error {
	conn, err := r.conn(ctx, site)
	if err != nil {
		return err
	}
	defer conn.Close()
	res, err := conn.Run(ctx, gridsite.Command{Argv: []string{"sh", "-c", probeScript, "probe", path.Clean(site.Root)}})
	if err != nil {
		return corral.ErrorAt(corral.Unavailable, "contact", "reaching %s: %w", site.Contact, err)
	}
	if res.Exit != 0 {
		return corral.ErrorAt(corral.Invalid, "root", "%s at %s cannot be the root of a site: %s",
			site.Root, site.Contact, lastLine(append(res.Stdout, res.Stderr...)))
	}
	return nil
}

// JobFile reads a file of a job's directory at its site.
func (e *Engine) JobFile(ctx context.Context, job corral.Job, name string) ([]byte, error) {
	var site corral.Site
	err := e.db.View(ctx, func(tx *store.Tx) (err error) {
		site, err = tx.Site(job.Site)
		return err
	})
	if err != nil {
		return nil, err
	}
	access, err := e.open(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	defer access.Conn.Close()
	return access.Batch(job.Kind).Read(ctx, job.Tag, name)
}
