package reconcile

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Visibility is for how long a batch system may hide a job that it has accepted.
const Visibility = 5 * time.Second

// Missing says since when polls have not shown a job, by tag. Only how long that has lasted tells a job that never
// arrived, or is lost, from one that its batch system hides for a while. It is kept in memory: a corrald that starts
// again looks for as long once more, so that what it has forgotten never makes it do something too early.
type Missing map[string]time.Time

// Looked notes what a poll at now showed of a job, and adds since when it has not shown it. A time that lies ahead is
// of a clock that was set back since, and says nothing.
func (m Missing) Looked(tag string, s Sighting, now time.Time) Sighting {
	if s.Known && !s.otherWorks() {
		m.Forget(tag)
		return s
	}
	if since, ok := m[tag]; !ok || since.After(now) {
		m[tag] = now
	}
	s.Missing, s.Visibility = m[tag], Visibility
	return s
}

// otherWorks reports whether all that a poll showed is a pilot that left the attempt to another, which had come in
// first. That one is what the attempt's end depends on, and the batch system may hide it still.
func (s Sighting) otherWorks() bool {
	return s.Phase == Ended && s.Report != nil && s.Report.Outcome == corral.OutcomeDuplicate
}

// Forget has the count begin anew: the job is over, or is being submitted, perhaps once more; from then on the batch
// system may hide it again.
func (m Missing) Forget(tag string) { delete(m, tag) }

// MayCome reports whether a job whose submission was never answered may yet show up. Until then it is not repeated.
// When the job was first asked for does not count: an answer that was lost just now may be that of the second try.
func (m Missing) MayCome(tag string, now time.Time) bool {
	since, ok := m[tag]
	return !ok || now.Sub(since) < Visibility
}
