package process

import (
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The report about a silent node states that it was silent, not which signal killed the connection to it.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	nobody := exec.Command("sleep", "1000")
	nobody.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := nobody.Start(); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	g := NewGroup()
	c := &Child{PID: nobody.Process.Pid, conn: ours, quiet: farStart, far: &far{way: "srun", node: "n2"}}
	g.children = []*Child{c}
	if hung := g.KillHung(time.Now(), time.Second); len(hung) != 1 || hung[0] != c {
		t.Errorf("KillHung = %v, want the way to n2", hung)
	}
	if err := nobody.Wait(); err == nil {
		t.Error("what leads to it was not killed")
	}
	if want := "said nothing for 2m0s"; c.Obituary() != want {
		t.Errorf("Obituary() = %q, want %q", c.Obituary(), want)
	}
}

// The time that a child may be silent depends on its kind and on whether it has ever sent a word. Time during which
// this process was stopped and could not check does not count.
func TestWhichChildrenHang(t *testing.T) {
	t.Parallel()
	const local = 5 * time.Second
	for name, c := range map[string]struct {
		child Child
		looks int // number of looks, one per second, until it hangs; 0: it never hangs
	}{
		"worker that spoke":         {Child{spoken: true}, 6},
		"worker that has not begun": {Child{}, 0},
		"worker that has ended":     {Child{spoken: true, ended: true}, 0},
		"host that spoke":           {Child{spoken: true, far: &far{}}, 31},
		"host that is started":      {Child{far: &far{}}, 121},
	} {
		hung := 0
		for look := 1; look <= 200 && hung == 0; look++ {
			if _, hangs := c.child.hangs(time.Second, local); hangs {
				hung = look
			}
		}
		if hung != c.looks {
			t.Errorf("%s: it hangs after look %d, want %d", name, hung, c.looks)
		}
	}
	if _, hangs := (&Child{spoken: true}).hangs(time.Hour, local); hangs {
		t.Error("it hangs, though this process did not look for an hour")
	}
}
