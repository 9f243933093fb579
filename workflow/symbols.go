package workflow

import "hash/maphash"

// symbols assigns numbers to texts: task ids, file names and words of commands, which occur many times in a large
// workflow. Each text is stored once. It is found through a table of numbers, which needs half the memory of a map of
// strings: a workflow of a million tasks has about three million texts. A slot of the table also contains half of its
// text's hash, so that the texts, which are scattered in memory, need not be accessed when a search skips other texts
// or when the table grows. The zero value is ready to use.
type symbols struct {
	texts []string // :: number → text
	slots []slot   // the number of slots is a power of two; at most three quarters of them are in use
	seed  maphash.Seed
}

// A slot is empty (0), or contains a text's hash in its upper half and the text's number + 1 in its lower half.
type slot uint64

func (s slot) hash() uint32  { return uint32(s >> 32) }
func (s slot) number() int32 { return int32(uint32(s)) - 1 }

// number returns the number of a text; a text that is not known yet gets a new number.
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

// of returns the text with the given number.
func (s *symbols) of(number int32) string { return s.texts[number] }

// find returns the number of a text; ok is false if the text is not known.
func (s *symbols) find(text string) (number int32, ok bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	found := s.slots[s.place(s.hash(text), text)]
	return found.number(), found != 0
}

func (s *symbols) hash(text string) uint32 { return uint32(maphash.String(s.seed, text)) }

// place returns the index of the slot that contains the text, or of the empty slot that the text would occupy.
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

// first returns the index at which the search for a hash begins, and next the index at which it continues.
func (s *symbols) first(hash uint32) int { return int(hash) & (len(s.slots) - 1) }
func (s *symbols) next(at int) int       { return (at + 1) & (len(s.slots) - 1) }

// grow doubles the number of slots.
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

// task returns the index of the task for a text. list contains, for each number of a text, the index of the task plus
// 1.
func (s *symbols) task(list []int32, text string) (i int, ok bool) {
	n, ok := s.find(text)
	if !ok {
		return 0, false
	}
	i = int(at32(list, n)) - 1
	return max(i, 0), i >= 0
}

// at32 returns an element of a list, or 0 if the index is beyond the list's end.
func at32(list []int32, n int32) int32 {
	if int(n) < len(list) {
		return list[n]
	}
	return 0
}

// with sets an element of a list, which grows if necessary.
func with(list []int32, n, value int32) []int32 {
	if more := int(n) + 1 - len(list); more > 0 {
		list = append(list, make([]int32, more)...)
	}
	list[n] = value
	return list
}
