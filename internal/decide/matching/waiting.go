package matching

// A Class is a group of jobs with nearly the same needs.
type Class struct {
	Needs Resources // of the first job; the others differ in memory, disk and time by 9 % at most
	Jobs  int
}

// Waiting returns the queued jobs grouped by their needs, in the order in which the first of each class are queued.
// Its running time depends only on the number of classes, not on the number of jobs.
func (m *Matcher[T]) Waiting() []Class {
	all := make([]Class, len(m.queue.sorted))
	for i, b := range m.queue.sorted {
		all[i] = Class{b.jobs[0].Needs, len(b.jobs)}
	}
	return all
}
