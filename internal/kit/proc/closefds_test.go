package proc_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/proc"
)

func TestCloseOnExec(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	given, err := syscall.Dup(int(null.Fd())) // open in children, unlike files that Go opens
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(given)
	child := func(files ...*os.File) string {
		cmd := exec.Command("sh", "-c", "ls /proc/$$/fd; :")
		cmd.ExtraFiles = files
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	if before := child(); before == "0 1 2" {
		t.Fatalf("a child has %s open before, want more", before)
	}
	if err := proc.CloseOnExec(); err != nil {
		t.Fatal(err)
	}
	if after := child(); after != "0 1 2" {
		t.Errorf("a child has %s open, want 0 1 2", after)
	}
	if _, err := syscall.Seek(given, 0, 0); err != nil {
		t.Errorf("the process has lost its own: %v", err)
	}
	if meant := child(null); meant != "0 1 2 3" {
		t.Errorf("a child that is given one more has %s open, want 0 1 2 3", meant)
	}
}
