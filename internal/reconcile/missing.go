package reconcile

import "time"

// Visibility is for how long a batch system may hide a job that it has accepted.
const Visibility = 5 * time.Second

// Missing says since when polls have not shown a job, by tag. Only how long that has lasted tells a job that never
// arrived, or is lost, from one that its batch system hides for a while. It is kept in memory: a corrald that starts
// again looks for as long once more, so that what it has forgotten never makes it do something too early.
type Missing map[string]time.Time

// Unseen notes that a poll at now did not show a job, and returns what is known of it. A time that lies ahead is of a
// clock that was set back since, and says nothing.
func (m Missing) Unseen(tag string, now time.Time) Sighting {
	if since, ok := m[tag]; !ok || since.After(now) {
		m[tag] = now
	}
	return Sighting{Missing: m[tag], Visibility: Visibility}
}

// Forget has the count begin anew: the job was seen, or is over, or is being submitted, perhaps once more; from then on
// the batch system may hide it again.
func (m Missing) Forget(tag string) { delete(m, tag) }

// MayCome reports whether a job whose submission was never answered may yet show up. Until then it is not repeated.
// When the job was first asked for does not count: an answer that was lost just now may be that of the second try.
func (m Missing) MayCome(tag string, now time.Time) bool {
	since, ok := m[tag]
	return !ok || now.Sub(since) < Visibility
}
