package corral

import "time"

// An Outage says how many workers of a glidein, or of a run's cluster, are out of reach, and since when.
type Outage struct {
	Workers int       `json:"workers"` // that are out of reach
	Of      int       `json:"of"`      // that there are
	Since   time.Time `json:"since"`   // of the first of them
}
