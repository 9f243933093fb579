package workflow

import "hash/maphash"

// symbols number texts: ids of tasks, names of files, words of commands, each of which a large workflow says many
// times. A text is kept once. A table of numbers finds it, which takes half of what a map of strings does: a workflow
// of a million tasks has some three million texts. A slot of the table has half of its text's hash, too, so that
// neither a search that passes other texts nor a growing table reads texts that lie anywhere in memory. The zero value
// is ready for use.
type symbols struct {
	texts []string // :: number → text
	slots []slot   // a power of two of them, three quarters full at most
	seed  maphash.Seed
}

// A slot is empty (0), or has a text's hash in its upper half and the text's number + 1 in its lower half.
type slot uint64

func (s slot) hash() uint32  { return uint32(s >> 32) }
func (s slot) number() int32 { return int32(uint32(s)) - 1 }

// number returns the number of a text, a new one for a text that was not met before.
func (s *symbols) number(text string) int32 {
	if 4*len(s.texts) >= 3*len(s.slots) {
		s.grow()
	}
	hash := s.hash(text)
	at := s.place(hash, text)
	if s.slots[at] == 0 {
		s.texts = append(s.texts, text)
		s.slots[at] = slot(hash)<<32 | slot(len(s.texts))
	}
	return s.slots[at].number()
}

// of returns the text with a number.
func (s *symbols) of(number int32) string { return s.texts[number] }

// find returns the number of a text that was met before.
func (s *symbols) find(text string) (number int32, ok bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	found := s.slots[s.place(s.hash(text), text)]
	return found.number(), found != 0
}

func (s *symbols) hash(text string) uint32 { return uint32(maphash.String(s.seed, text)) }

// place returns where the slot is that has the text, or the one that it would have.
func (s *symbols) place(hash uint32, text string) int {
	at := s.first(hash)
	for {
		found := s.slots[at]
		if found == 0 || found.hash() == hash && s.texts[found.number()] == text {
			return at
		}
		at = s.next(at)
	}
}

// first is where the search for a hash begins, and next where it goes on.
func (s *symbols) first(hash uint32) int { return int(hash) & (len(s.slots) - 1) }
func (s *symbols) next(at int) int       { return (at + 1) & (len(s.slots) - 1) }

// grow doubles the slots.
func (s *symbols) grow() {
	if len(s.slots) == 0 {
		s.seed = maphash.MakeSeed()
	}
	old := s.slots
	s.slots = make([]slot, max(64, 2*len(old)))
	for _, moved := range old {
		if moved == 0 {
			continue
		}
		at := s.first(moved.hash())
		for s.slots[at] != 0 {
			at = s.next(at)
		}
		s.slots[at] = moved
	}
}

// task returns the task that a list, by number plus 1, has for a text.
func (s *symbols) task(list []int32, text string) (i int, ok bool) {
	n, ok := s.find(text)
	if !ok {
		return 0, false
	}
	i = int(at32(list, n)) - 1
	return max(i, 0), i >= 0
}

// at32 is an element of a list, 0 behind its end.
func at32(list []int32, n int32) int32 {
	if int(n) < len(list) {
		return list[n]
	}
	return 0
}

// with sets an element of a list, which grows if it is too short.
func with(list []int32, n, value int32) []int32 {
	if more := int(n) + 1 - len(list); more > 0 {
		list = append(list, make([]int32, more)...)
	}
	list[n] = value
	return list
}
