package queuemodel

import "time"

// Starts returns the planned start of each waiting job, in the order of the look; it is negative for a job that never
// starts. It returns nil if processors are counted.
func (m *Model) Starts() (all []time.Duration) {
	for _, j := range m.jobs {
		all = append(all, j.start)
	}
	return all
}
