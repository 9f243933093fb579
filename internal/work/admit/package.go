package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// All owners share packages and mirrors, which do not count against quotas. The store checks that their names are
// unique among all owners.

// Package adds a worker package to the catalog. The caller has verified its signature and stored its archive.
func Package(tx *store.Tx, p corral.Package) (corral.Package, error) {
	return admitted(tx, claim{owner: p.Owner}, func() (corral.Package, error) { return tx.CreatePackage(p) })
}

// Mirror adds a mirror. Package adds the packages that it lists.
func Mirror(tx *store.Tx, m corral.Mirror) (corral.Mirror, error) {
	return admitted(tx, claim{owner: m.Owner}, func() (corral.Mirror, error) { return tx.CreateMirror(m) })
}
