package store_test

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if err := tx.AddProbe(w.site.ID, "two"); err != nil {
			return err
		}
		return tx.AddProbe(w.site.ID, "one")
	})
	w.write(func(tx *store.Tx) error { return tx.RemoveProbe("two") })
	w.write(func(tx *store.Tx) error {
		if got, err := tx.Probes(w.site.ID); err != nil || !slices.Equal(got, []string{"one"}) {
			t.Errorf("Probes() = %q, %v; want one", got, err)
		}
		if _, err := tx.MoveSite(w.site.ID, corral.SiteRemove, ""); err != nil {
			return err
		}
		if err := tx.AddProbe(w.site.ID, "three"); corral.KindOf(err) != corral.Conflict {
			t.Errorf("AddProbe() at a site that is being removed: %v, want a Conflict", err)
		}
		return nil
	})
}
