package nodecheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		scratch string
		memory  int
		want    string // "": fit
	}{
		{"fit", t.TempDir(), 2, ""},
		{"no scratch", filepath.Join(t.TempDir(), "none"), 1, "scratch: "},
		{"scratch is a file", file, 1, "scratch: "},
		{"memory", t.TempDir(), 1 << 30, "memory: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.scratch, c.memory)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Check = %v, want %q", err, c.want)
			}
		})
	}
}

func TestCheckClock(t *testing.T) {
	t.Parallel()
	for offset, ok := range map[time.Duration]bool{0: true, 59 * time.Second: true, -59 * time.Second: true,
		61 * time.Second: false, -time.Hour: false} {
		if err := CheckClock(offset); (err == nil) != ok {
			t.Errorf("CheckClock(%s) = %v, want ok %v", offset, err, ok)
		}
	}
}

func TestCheckAtLeast(t *testing.T) {
	t.Parallel()
	if err := checkAtLeast(100, 100, nil); err != nil {
		t.Errorf("checkAtLeast(100, 100, nil) = %v", err)
	}
	if err := checkAtLeast(99, 100, nil); err == nil {
		t.Error("checkAtLeast(99, 100, nil) = nil")
	}
}
