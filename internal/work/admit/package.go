package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Packages and mirrors are everybody's: no quota counts them, and their names are free in the row's own check, which
// looks at those of all.

// Package puts a worker package into the catalog. The caller has checked its signature, and has its archive.
func Package(tx *store.Tx, p corral.Package) (corral.Package, error) {
	return admitted(tx, claim{owner: p.Owner}, func() (corral.Package, error) { return tx.CreatePackage(p) })
}

// Mirror makes a mirror known. What it offers is put into the catalog by Package.
func Mirror(tx *store.Tx, m corral.Mirror) (corral.Mirror, error) {
	return admitted(tx, claim{owner: m.Owner}, func() (corral.Mirror, error) { return tx.CreateMirror(m) })
}
