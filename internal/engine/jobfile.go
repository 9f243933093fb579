package engine

import (
	"context"
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

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
	defer access.Head.Close()
	if site.State == corral.SiteDeleted { // nobody else closes it
		defer e.cfg.Reach.Leave(site.ID)
	}
	return access.Batch(job.Kind).Read(ctx, job.Tag, name)
}
