package matching

// A Class is jobs that need nearly the same.
type Class struct {
	Needs Resources // of the first of them; the others differ in memory, disk and time by 9 % at most
	Jobs  int
}

// Waiting returns the queued jobs by what they need, in the order in which the first of each class are queued. However
// many jobs there are, it takes as long as there are classes.
func (m *Matcher[T]) Waiting() []Class {
	all := make([]Class, len(m.queue.sorted))
	for i, b := range m.queue.sorted {
		all[i] = Class{b.jobs[0].Needs, len(b.jobs)}
	}
	return all
}
