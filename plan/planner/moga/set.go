package moga

import "encoding/binary"

// A Set is a set of slots: a chromosome with a bit for each slot.
type Set []uint64

func newSet(n int) Set { return make(Set, (n+63)/64) }

// SetOf returns the set of the chosen slots among n.
func SetOf(n int, chosen func(slot int) bool) Set {
	s := newSet(n)
	for i := range n {
		if chosen(i) {
			s.flip(i)
		}
	}
	return s
}

// Has reports whether a slot is in the set.
func (s Set) Has(slot int) bool { return s[slot/64]>>(slot%64)&1 == 1 }

func (s Set) flip(slot int) { s[slot/64] ^= 1 << (slot % 64) }

func (s Set) clone() Set { return append(Set(nil), s...) }

// trim clears the bits after the last slot.
func (s Set) trim(n int) {
	if n%64 > 0 {
		s[len(s)-1] &= 1<<(n%64) - 1
	}
}

// key encodes the set as a map key.
func (s Set) key() string {
	var b []byte
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}
