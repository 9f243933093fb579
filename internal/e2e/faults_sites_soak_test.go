//go:build sites && soak

package e2e

import (
	"os"
	"regexp"
	"testing"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// The same on an HTCondor cluster: its commands, and the packages that are put at the site.
func TestFaultsCondor(t *testing.T) {
	t.Parallel()
	made := madeForNode(t)
	playFaults(t, life{site: "here", cluster: "mine", only: regexp.MustCompile(`^(pool|download)[.]|[.](make|put|replace)$`),
		of: func(t testing.TB) *user { return newCondorUser(t).user },
		begin: func(l *living) {
			l.insist("package", "import", "--sign", made.worker)
			l.insist("cluster", "create", "mine", "--kind", "condor", "--htcondor", made.release, "--key", "c")
			l.insist("site", "create", "here", "--contact", "local:", "--batch", "fork", "--key", "s", "--wait")
		}})
}

// The same behind an sshd, at a root that only a login there knows: workers reach corrald through a relay, and corrald has
// to get its archives back from a mirror.
func TestFaultsSSH(t *testing.T) {
	t.Parallel()
	playFaults(t, life{site: "hpc", cluster: "default", flags: []string{"--broker", "relay"},
		only: regexp.MustCompile(`^download$|[.](abandon|expand|relay|ping|make|put|replace|end)$`),
		of:   func(t testing.TB) *user { return newUser(t) },
		begin: func(l *living) {
			sshd := gridsitetest.StartSSHD(l.t)
			copied, _ := l.giveAway("open/copied")
			if err := os.Symlink(sshd.SSH(""), l.dir+"/.ssh"); err != nil {
				l.t.Fatal(err)
			}
			l.insist("mirror", "add", "campus", "file://"+copied, "--key", "m")
			l.insist("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "fork", "--root", "$HOME/far", "--key", "s", "--wait")
		}})
}

// The same with pilots in the queue of a real Slurm.
func TestFaultsSlurm(t *testing.T) {
	t.Parallel()
	slurm := startAccounting(t)
	nodesUp.RLock()
	defer nodesUp.RUnlock()
	playFaults(t, life{site: "hpc", cluster: "default", only: regexp.MustCompile(`[.](try|submit|poll|lost|cancel|end|forget|survey)$`),
		of: func(t testing.TB) *user { return newUser(t, slurm.Environ()...) },
		begin: func(l *living) {
			l.insist("site", "create", "hpc", "--contact", "local:", "--batch", "slurm", "--account", "corral", "--root", l.dir+"/far", "--key", "s", "--wait")
		}})
}
