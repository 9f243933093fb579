package condorworker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral"
)

// TestSlotOf: a slot's ad contains the worker's id and the job's resources; missing values are 0.
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

// A slot's ad contains its home's address and its glidein's end; other contents are harmless.
func FuzzSlot(f *testing.F) {
	f.Add("CorralWorker = \"g/0\"\nCorralHome = \"unix:/w tls:h:1\"\nCorralHomeDigest = \"d\"\nCorralEnd = 1000\nGPUs = 1\nCorralSiteSpeed = 0.5\n")
	f.Add("Cpus = 1 = 2\n= \"\n\"CorralWorker\"")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "ad")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := slotOf(file)
		if (s.Worker == "") != (err != nil) || min(s.CPUs, s.MemoryMiB, s.GPUs) < 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestSlotContainsHomeAddress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ad")
	ad := "CorralWorker = \"g/0\"\nCorralHome = \"unix:/w tls:h:1\"\nCorralHomeDigest = \"d\"\nCorralEnd = 1000\nGPUs = 1\nCorralSiteSpeed = 0.5\n"
	if err := os.WriteFile(file, []byte(ad), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := slotOf(file)
	if err != nil || len(s.Home) != 2 || s.Home[1] != "tls:h:1" || s.HomeDigest != "d" || s.Ends.Unix() != 1000 || s.GPUs != 1 ||
		s.Speed != 0.5 {
		t.Errorf("%+v, %v", s, err)
	}
}
