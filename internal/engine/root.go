package engine

import (
	"context"
	"crypto/rand"
	"path"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// variableScript prints the variable $2 as a login shell has it, after the mark $1: what stands before is the profile's.
const variableScript = `printf %s "$1"; printenv "$2"`

// ExpandRoot returns the root of a site with the variable that it begins with, as $SCRATCH/corral does, expanded by
// a login shell there. A variable that is not set, or no absolute path, is an Invalid error.
func (r *Reach) ExpandRoot(ctx context.Context, site corral.Site, acceptHostKey bool) (string, error) {
	access, err := r.enter(ctx, site, acceptHostKey)
	if err != nil {
		return "", err
	}
	defer access.Conn.Close()
	variable, below, _ := strings.Cut(strings.TrimPrefix(site.Root, "$"), "/")
	mark := rand.Text()
	res, err := access.Conn.Run(ctx, gridsite.Command{Argv: []string{"sh", "-lc", variableScript, "sh", mark, variable}})
	if err != nil {
		return "", corral.ErrorAt(corral.Unavailable, "contact", "asking %s for $%s: %w", site.Contact, variable, err)
	}
	_, value, _ := strings.Cut(string(res.Stdout), mark)
	value = strings.TrimSuffix(value, "\n")
	root := path.Join(value, below)
	if res.Exit != 0 || !path.IsAbs(value) || root == "/" || strings.ContainsFunc(value, unicode.IsControl) {
		return "", corral.ErrorAt(corral.Invalid, "root", "$%s is %.80q at %s, which is no absolute path: name the directory itself",
			variable, value, site.Contact)
	}
	return root, nil
}
