package condorworker

import "testing"

func TestParsePorts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want [2]uint16
		ok   bool
	}{
		{"", [2]uint16{}, true},
		{"20000,20100", [2]uint16{20000, 20100}, true},
		{" 20000 , 20000 ", [2]uint16{20000, 20000}, true},
		{"20100,20000", [2]uint16{}, false},
		{"20000", [2]uint16{}, false},
		{"20000,20100,20200", [2]uint16{}, false},
		{"80,20000", [2]uint16{}, false},
		{"20000,70000", [2]uint16{}, false},
		{"a,b", [2]uint16{}, false},
	} {
		if got, err := parsePorts(tt.text); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("parsePorts(%q) = %v, %v, want %v, ok %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
}
