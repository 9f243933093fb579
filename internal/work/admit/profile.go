package admit

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// Profile creates a profile. If p has an id, it replaces the stored profile by p, into which more samples were merged.
// was is the digest of the profile before the merge: see store.Tx.GrowProfile.
func Profile(tx *store.Tx, p corral.Profile, was string) (corral.Profile, error) {
	if p.ID != 0 {
		return admitted(tx, claim{owner: p.Owner}, func() (corral.Profile, error) { return tx.GrowProfile(p, was) })
	}
	return admitted(tx, claim{
		owner: p.Owner, quotas: []string{"profiles"},
		taken: func() error { return tx.FreeProfileName(p.Owner, p.Name) },
	}, func() (corral.Profile, error) { return tx.CreateProfile(p) })
}
