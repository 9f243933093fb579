package executor

import "testing"

// TestCounters: the two byte counts are read; without them the bytes are unknown.
func TestCounters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text          string
		read, written int64
		ok            bool
	}{
		{"rchar: 4096\nwchar: 12\nsyscr: 3\n", 4096, 12, true},
		{"", 0, 0, false},
		{"rchar: 4096\n", 0, 0, false},
		{"rchar: -1\nwchar: 2\n", 0, 0, false},
		{"rchar: 99999999999999999999\nwchar: 2\n", 0, 0, false},
	} {
		read, written, ok := counters([]byte(tc.text))
		if ok != tc.ok || ok && (read != tc.read || written != tc.written) {
			t.Errorf("%q: %d, %d, %v", tc.text, read, written, ok)
		}
	}
}
