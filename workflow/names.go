package workflow

import "strconv"

// Names generates unique names, for formats that are stricter about names than workflows are.
type Names map[string]int // :: name → the last number appended to it, from 1

// Take returns a name, with a number appended if it is already in use.
func (n Names) Take(name string) string {
	unique := name
	for n[unique] > 0 {
		n[name]++
		unique = name + "_" + strconv.Itoa(n[name])
	}
	n[unique] = 1
	return unique
}
