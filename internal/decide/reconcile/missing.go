package reconcile

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Visibility is how long a batch system may hide a job that it has accepted.
const Visibility = 5 * time.Second

// Missing records, by tag, since when polls have not shown a job. Only the duration of the absence distinguishes a job
// that never arrived or is lost from a job that its batch system hides for a while. The data is kept only in memory: a
// restarted corrald waits for the full time again, so that losing the data never causes it to act too early.
type Missing map[string]time.Time

// Looked records the result of a poll for a job at now, and adds the time since which the job has not been shown to
// that result. A recorded time in the future means that the clock has been set back since, and is replaced.
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

// otherWorks reports whether a poll showed only a pilot that left the attempt to another pilot, which had started
// first. The attempt's end depends on that other pilot, which the batch system may still hide.
func (s Sighting) otherWorks() bool {
	return s.Phase == Ended && s.Report != nil && s.Report.Outcome == corral.OutcomeDuplicate
}

// Forget resets the record of a job, because the job has ended or is being submitted, perhaps again; after a submission
// the batch system may hide the job once more.
func (m Missing) Forget(tag string) { delete(m, tag) }

// MayCome reports whether a job whose submission was never answered may still appear. As long as it may, the submission
// is not repeated. The time of the first request does not count, because an answer that was lost just now may belong to
// the second try.
func (m Missing) MayCome(tag string, now time.Time) bool {
	since, ok := m[tag]
	return !ok || now.Sub(since) < Visibility
}
