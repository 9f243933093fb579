package admit

import (
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Site creates a site that corrald has visited.
func Site(tx *store.Tx, s corral.Site) (corral.Site, error) {
	return admitted(tx, claim{
		owner: s.Owner, quotas: []string{"sites"},
		possible: func() error { return FreeSite(tx, s) },
	}, func() (corral.Site, error) { return tx.CreateSite(s) })
}

// FreeSite refuses a site if its name is taken, or if its root contains another root or is inside one: a cleanup job
// removes everything below the root of its site.
func FreeSite(tx *store.Tx, site corral.Site) error {
	err := tx.FreeSiteName(site.Owner, site.Name)
	if corral.KindOf(err) == corral.Conflict {
		return corral.ErrorAt(corral.Conflict, "name", "%w", err)
	}
	if err != nil {
		return err
	}
	others, err := tx.SitesAt(site.Contact) // accounts may be shared, and a cleanup job ignores owners
	for _, o := range others {
		if !within(o.Root, site.Root) && !within(site.Root, o.Root) {
			continue
		}
		if o.Owner != site.Owner {
			return corral.ErrorAt(corral.Conflict, "root",
				"%s and the root of another user's site there would contain one "+
					"another: name another root", site.Root)
		}
		if o.Name != site.Name {
			return corral.ErrorAt(corral.Conflict, "root", "%s and the root %s of site %s would contain one another",
				site.Root, o.Root, o.Name)
		}
	}
	return err
}

// within reports whether path is dir or below it. Both paths must be clean. Symbolic links at the site are not
// resolved.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
