package pool

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Parcels of one run are made and removed side by side; none takes another's folder away.
func TestParcelsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	job := Job{Dir: t.TempDir(), Tasks: []Task{{ID: "t"}}}
	var couriers sync.WaitGroup
	for range 4 {
		couriers.Go(func() {
			for range 300 {
				dir, err := spool(job)
				if err = errors.Join(err, Pack(dir, job)); err != nil {
					t.Error(err)
					return
				}
				unspool(dir)
			}
		})
	}
	couriers.Wait()
	if _, err := os.Stat(filepath.Join(job.Dir, SpoolDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}
