package workflow

import "hash/maphash"

// symbols number texts: ids of tasks, names of files, words of commands, each of which a large workflow says many
// times. A text is kept once. A table of numbers finds it, which takes a third of what a map of strings does: a
// workflow of a million tasks has some three million texts. The zero value is ready for use.
type symbols struct {
	texts []string // :: number → text
	slots []int32  // a power of two of them, half full at most: number + 1 of a text, 0 for none
	seed  maphash.Seed
}

// number returns the number of a text, a new one for a text that was not met before.
func (s *symbols) number(text string) int32 {
	if 2*len(s.texts) >= len(s.slots) {
		s.grow()
	}
	at := s.slot(text)
	if s.slots[at] == 0 {
		s.texts = append(s.texts, text)
		s.slots[at] = int32(len(s.texts))
	}
	return s.slots[at] - 1
}

// of returns the text with a number.
func (s *symbols) of(number int32) string { return s.texts[number] }

// find returns the number of a text that was met before.
func (s *symbols) find(text string) (number int32, ok bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	number = s.slots[s.slot(text)] - 1
	return number, number >= 0
}

// slot returns the slot that has the text, or the one that it would have.
func (s *symbols) slot(text string) int {
	last := len(s.slots) - 1
	at := int(maphash.String(s.seed, text)) & last
	for s.slots[at] != 0 && s.texts[s.slots[at]-1] != text {
		at = (at + 1) & last
	}
	return at
}

// grow doubles the slots.
func (s *symbols) grow() {
	if len(s.slots) == 0 {
		s.seed = maphash.MakeSeed()
	}
	s.slots = make([]int32, max(64, 2*len(s.slots)))
	for n, text := range s.texts {
		s.slots[s.slot(text)] = int32(n) + 1
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
