package headnode

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

func TestParsePlatform(t *testing.T) {
	t.Parallel()
	tests := []struct {
		out  string
		want corral.Platform
	}{
		{"Linux\nx86_64\nglibc2.36\n", corral.Platform{OS: "linux", Arch: "x86_64", Libc: "glibc2.36"}},
		{"Linux\naarch64\nmusl\n", corral.Platform{OS: "linux", Arch: "aarch64", Libc: "musl"}},
		{"Linux\ni686\nglibc2.17\n", corral.Platform{OS: "linux", Arch: "x86", Libc: "glibc2.17"}},
		{"Linux\namd64\nunknown\n", corral.Platform{OS: "linux", Arch: "x86_64", Libc: "unknown"}},
	}
	for _, tt := range tests {
		got, err := parsePlatform(gridsite.Result{Stdout: []byte(tt.out)})
		if err != nil || got != tt.want {
			t.Errorf("parsePlatform(%q) = %v, %v, want %v", tt.out, got, err, tt.want)
		}
	}
	for _, bad := range []gridsite.Result{{Exit: 1}, {Stdout: []byte("Linux\n")}, {Stdout: []byte("a\nb\nc\nd\n")}} {
		if got, err := parsePlatform(bad); err == nil {
			t.Errorf("parsePlatform(%+v) = %v, want an error", bad, got)
		}
	}
}
