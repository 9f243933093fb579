package condorworker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral"
)

// TestSlotOf: the ad of a slot tells the worker's id and what the job may have; what it does not tell is 0.
func TestSlotOf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ad")
	for text, want := range map[string]corral.Resources{
		"CorralWorker = \"g/0\"\nCpus = 2\nMemory = 300\n": {CPUs: 2, MemoryMiB: 300},
		"CorralWorker = \"g/0\"\nCpus = -2\nMemory = 1e3":  {},
		"Memory = 99999999999\nCorralWorker = \"g/0\"":     {},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := slotOf(file); got.Worker != "g/0" || got.Resources != want || err != nil {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "CorralWorker = 7\nCpus = 1"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := slotOf(file); err == nil {
			t.Errorf("%q is worker %q", text, got.Worker)
		}
	}
}
