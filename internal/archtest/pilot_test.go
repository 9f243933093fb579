package archtest

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// The pilot is sent to sites that we know nothing about: it is one static file, and small.
const maxPilotBytes = 12 << 20

const maxShimBytes = 8 << 20

// notInPilot lists what the pilot must not carry: it fetches by http(s) and from files, corrald does the
// rest.
var notInPilot = map[string]string{
	"github.com/labstack/echo": "it serves nothing",
	"github.com/jlaffaye/ftp":  "corrald fetches from ftp mirrors",
	"github.com/pkg/sftp":      "corrald fetches from sftp mirrors",
	"modernc.org/sqlite":       "it stores nothing",
	"golang.org/x/crypto/ssh":  "it logs in nowhere",
	"gonum.org/v1/plot":        "corral draws",
	module + "/internal/store": "it stores nothing",
}

// notInShim lists packages that would slow the start of the shim's program and that it does not use.
var notInShim = map[string]string{
	"github.com/urfave/cli": "its options are Slurm's", "gopkg.in/yaml": "it reads none", "modernc.org/sqlite": "it stores nothing",
}

// notInCorrald lists what the daemon must not carry.
var notInCorrald = map[string]string{"gonum.org/v1/plot": "corral draws"}

func TestPilotCarriesOnlyWhatItNeeds(t *testing.T) { carriesNone(t, "pilot", notInPilot) }

func TestCorraldCarriesOnlyWhatItNeeds(t *testing.T) { carriesNone(t, "corrald", notInCorrald) }

// carriesNone checks that a program depends on no package that is banned from it: prefix of its path → why.
func carriesNone(t *testing.T, program string, banned map[string]string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "./cmd/"+program)
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dep := range strings.Lines(string(out)) {
		for prefix, why := range banned {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("%s depends on %s: %s", program, strings.TrimSpace(dep), why)
			}
		}
	}
}

func TestPilotIsStaticAndSmall(t *testing.T) {
	t.Parallel()
	dir, err := programs.Plain()
	if err != nil {
		t.Fatal(err)
	}
	checkPilot(t, filepath.Join(dir, "pilot"))
}

// The program of the shim is started once for each job of a workflow: it is one static file, and smaller.
func TestShimIsStaticAndSmall(t *testing.T) {
	t.Parallel()
	carriesNone(t, "corral-slurm", notInShim)
	dir, err := programs.Plain()
	if err != nil {
		t.Fatal(err)
	}
	checkProgram(t, filepath.Join(dir, "corral-slurm"), maxShimBytes)
}

func checkPilot(t *testing.T, file string) {
	t.Helper()
	checkProgram(t, file, maxPilotBytes)
}

func checkProgram(t *testing.T, file string, most int64) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("%s has %d bytes, at most %d", file, info.Size(), most)
	}
	checkStatic(t, file)
}

func checkStatic(t *testing.T, file string) {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s asks for a dynamic loader", file)
		}
	}
}
