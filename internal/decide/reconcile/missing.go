package reconcile

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Visibility is how long a batch system may hide a job that it has accepted.
const Visibility = 5 * time.Second

// Missing records, by tag, since when polls have not shown a job. Only the duration of its absence distinguishes a
// job that never arrived, or is lost, from one that its batch system hides for a while. It is kept in memory: a
// restarted corrald waits for the full time again, so that a loss of this data never makes it act too early.
type Missing map[string]time.Time

// Looked records the result of a poll for a job at now, and adds the time since which the job has not been shown. A
// time in the future comes from a clock that was set back since, and is replaced.
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

// otherWorks reports whether a poll showed only a pilot that left the attempt to another, which had come first. The
// attempt's end depends on that other pilot, which the batch system may still hide.
func (s Sighting) otherWorks() bool {
	return s.Phase == Ended && s.Report != nil && s.Report.Outcome == corral.OutcomeDuplicate
}

// Forget resets the count, because the job has ended or is being submitted, perhaps again; after a submission the
// batch system may hide it once more.
func (m Missing) Forget(tag string) { delete(m, tag) }

// MayCome reports whether a job whose submission was never answered may still appear. Until then it is not repeated.
// The time of the first request does not count: an answer that was lost just now may be that of the second try.
func (m Missing) MayCome(tag string, now time.Time) bool {
	since, ok := m[tag]
	return !ok || now.Sub(since) < Visibility
}
