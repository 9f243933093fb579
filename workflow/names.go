package workflow

import "strconv"

// Names are names that are given once each, for formats that allow fewer of them than workflows have.
type Names map[string]int // :: name → the last number that was put behind it, from 1

// Take takes a name, with a number behind it if it is taken already.
func (n Names) Take(name string) string {
	unique := name
	for n[unique] > 0 {
		n[name]++
		unique = name + "_" + strconv.Itoa(n[name])
	}
	n[unique] = 1
	return unique
}
