package corral

import "time"

// An Outage counts the workers of a glidein, or of a run's cluster, that cannot be reached.
type Outage struct {
	Workers int       `json:"workers"` // number that cannot be reached
	Of      int       `json:"of"`      // total number
	Since   time.Time `json:"since"`   // since the first of them was lost
}
