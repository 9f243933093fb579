//go:build sites

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// far starts corrald, with a site "far" that does not see runs' directories, and returns the site's root.
func (u *user) far() (root string) {
	u.t.Helper()
	runs := u.dir + "/data/corral/runs"
	if err := os.MkdirAll(runs, 0o700); err != nil {
		u.t.Fatal(err)
	}
	unshare := "unshare -m"
	if os.Getuid() != 0 {
		unshare = "unshare -rm"
	}
	sshd := gridsitetest.StartSSHD(u.t,
		fmt.Sprintf(`ForceCommand exec %s sh -c 'mount -t tmpfs none "%s" && exec sh -c "$SSH_ORIGINAL_COMMAND"'`, unshare, runs))
	if err := os.Symlink(sshd.SSH(""), u.dir+"/.ssh"); err != nil {
		u.t.Fatal(err)
	}
	root = u.dir + "/far"
	u.must("up")
	u.must("site", "create", "far", "--contact", sshd.Contact(), "--batch", "fork", "--root", root, "--wait", "--timeout", "5m")
	return root
}

// Workers of a site that shares no file system with corrald do a run's tasks beside a worker that does: their files
// travel with them.
func TestSiteWithoutSharedFiles(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	root := u.far()
	u.must("glidein", "create", "--site", "far", "--hosts", "2", "--walltime", "20m", "--wait", "--timeout", "5m")
	u.must("glidein", "create", "--site", "local", "--wait", "--timeout", "5m")
	first := steps(30, 200*time.Millisecond)
	var tasks []task
	for i, k := range first {
		tasks = append(tasks, k, task{
			id: fmt.Sprintf("n%03d", i), parents: []string{k.id}, in: k.out, out: []string{"next/" + k.out[0]},
			script: fmt.Sprintf("cat %s %s > next/%s", k.out[0], k.out[0], k.out[0]),
		})
	}
	run := u.must("run", u.workflow("travel", tasks...), "-q")
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		t.Errorf("run is %s with %d requeued: %s", got.State, got.Report.Requeued, got.Reason)
	}
	wantOutputs(t, got.Dir, len(first))
	for i := range first {
		name := fmt.Sprintf("t%03d", i)
		b, err := os.ReadFile(filepath.Join(got.Dir, "data/next", name+".txt"))
		if err != nil || strings.TrimSpace(string(b)) != name+"\n"+name {
			t.Errorf("output of n%03d is %q (%v)", i, b, err)
		}
	}
	for _, w := range u.workers() {
		if w.DoneTasks == 0 {
			t.Errorf("worker %s has done nothing", w.ID)
		}
	}
	if left, _ := filepath.Glob(got.Dir + "/.*"); len(left) > 0 {
		t.Errorf("left in the run's directory: %v", left)
	}
	u.must("site", "remove", "far", "--wait", "--timeout", "5m")
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the root is still there: %v", err)
	}
	u.must("down")
}
