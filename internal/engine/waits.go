package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// noteWaits records why jobs wait in the site's queue, all that is new with one transaction: a queue may have other
// reasons at each look. It remembers since when the site has said of some that it never starts them.
func (l *siteLoop) noteWaits(ctx context.Context, live []corral.Job, statuses map[string]gridsite.JobStatus, now time.Time) error {
	hopeless := map[corral.JobID]time.Time{}
	var changed []corral.Job
	for _, j := range live {
		st := statuses[j.Tag]
		if st.Phase != gridsite.Queued || st.Waits == "" {
			continue
		}
		if st.Never {
			hopeless[j.ID] = now
			if since, known := l.hopeless[j.ID]; known {
				hopeless[j.ID] = since
			}
		}
		if j.Reason != st.Waits && j.Asked == corral.AskNothing {
			changed = append(changed, j)
		}
	}
	l.hopeless = hopeless
	if len(changed) == 0 {
		return nil
	}
	err := l.write(ctx, func(tx *store.Tx) error {
		for _, j := range changed {
			if _, err := tx.NoteWaits(j.ID, statuses[j.Tag].Waits); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording why %d jobs wait: %w", len(changed), err)
	}
	return nil
}
