package admission

import (
	"strings"
	"testing"
)

func TestNodeName(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"": "", "n1": "n1", "gpu-07.hpc.example.org": "gpu-07.hpc.example.org",
		"-x": "", "n[1-9]": "", "n1,n2": "", "$(id)": "", strings.Repeat("n", 300): ""} {
		if got := NodeName(said); got != want {
			t.Errorf("NodeName(%.20q) = %q, want %q", said, got, want)
		}
	}
}
