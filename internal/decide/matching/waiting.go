package matching

// A Class is a group of jobs with nearly the same needs.
type Class struct {
	Needs Resources // of the first job; the other jobs differ in memory, disk and time by at most 9 %
	Jobs  int
}

// Waiting returns the queued jobs grouped by their needs, in the queue order of the first job of each class. Its
// running time depends only on the number of classes, not on the number of jobs.
func (m *Matcher[T]) Waiting() []Class {
	all := make([]Class, len(m.queue.sorted))
	for i, b := range m.queue.sorted {
		all[i] = Class{b.jobs[0].Needs, len(b.jobs)}
	}
	return all
}
