package corral

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// MirrorID identifies a mirror.
type MirrorID int64

// A MirrorState specifies whether packages are requested from a mirror.
type MirrorState string

const (
	MirrorReady   MirrorState = "READY"
	MirrorDeleted MirrorState = "DELETED" // tombstone
)

// MirrorStates lists all states in their order of life.
var MirrorStates = []MirrorState{MirrorReady, MirrorDeleted}

// A Mirror is a server or directory with worker packages.
type Mirror struct {
	ID        MirrorID     `json:"id"`
	Name      string       `json:"name"`
	Owner     string       `json:"owner"`
	URL       string       `json:"url"` // of its directory: http, https, ftp, sftp or file
	State     MirrorState  `json:"state"`
	Reason    string       `json:"reason,omitempty"`    // the problem that the last check found
	Packages  int          `json:"packages"`            // number of packages of the catalog in its index
	Health    MirrorHealth `json:"health"`              // as measured
	CheckedAt time.Time    `json:"checked_at,omitzero"` // when its index was last read
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// MirrorHealth holds the measurements of a mirror. Their weight halves every day.
// The zero value describes a mirror that was never tried.
type MirrorHealth struct {
	Successes  float64   `json:"successes"` // transfers that delivered the correct bytes
	Failures   float64   `json:"failures"`
	BytesPerS  float64   `json:"bytes_per_s"`          // mean of the successes
	MeasuredAt time.Time `json:"measured_at,omitzero"` // of the last transfer
}

// healthHalfLife is the time after which a measurement's weight has halved.
const healthHalfLife = 24 * time.Hour

// Assumptions about a mirror that was never tried: one success at this speed and one failure. They have as much weight
// as the first measurement.
const (
	priorTries     = 1.0
	priorBytesPerS = 1 << 20
)

// After returns the health after one more transfer, which ended at now.
func (h MirrorHealth) After(ok bool, bytes int64, took time.Duration, now time.Time) MirrorHealth {
	weight := h.weight(now)
	h.Successes, h.Failures = h.Successes*weight, h.Failures*weight
	if !ok {
		h.Failures++
	} else {
		rate := float64(bytes) / max(took.Seconds(), 1e-3)
		h.BytesPerS = (h.BytesPerS*h.Successes + rate) / (h.Successes + 1)
		h.Successes++
	}
	h.MeasuredAt = now
	return h
}

// weight returns the weight of the earlier measurements at now.
func (h MirrorHealth) weight(now time.Time) float64 {
	age := max(now.Sub(h.MeasuredAt), 0) // the clock may have been set back
	return math.Exp2(-age.Hours() / healthHalfLife.Hours())
}

// score returns the number of useful bytes per second to expect from the mirror at now: the probability that a transfer
// succeeds, times its speed. As the measurements age, both values return to those assumed for an untried mirror, so
// that a bad day is forgotten.
func (h MirrorHealth) score(now time.Time) float64 {
	weight := h.weight(now)
	good, bad := h.Successes*weight, h.Failures*weight
	chance := (good + priorTries) / (good + bad + 2*priorTries)
	return chance * (h.BytesPerS*good + priorBytesPerS*priorTries) / (good + priorTries)
}

// RankMirrors returns the mirrors in the order in which to try them: by descending score; mirrors with equal scores are
// in order of age, oldest first.
func RankMirrors(mirrors []Mirror, now time.Time) []Mirror {
	ranked := slices.Clone(mirrors)
	slices.SortFunc(ranked, func(a, b Mirror) int {
		return cmp.Or(cmp.Compare(b.Health.score(now), a.Health.score(now)), cmp.Compare(a.ID, b.ID))
	})
	return ranked
}
