//go:build sites

package engine

import (
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// A certified user can log in only with certificates.
type certified struct {
	t  *testing.T
	d  *gridsitetest.SSHD
	ca string
	me string
}

func newCertified(t *testing.T) certified {
	t.Helper()
	d := gridsitetest.StartSSHD(t)
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	c := certified{t, d, filepath.Join(d.Dir, "ca"), u.Username}
	gridsitetest.Keygen(t, "-t", "ed25519", "-N", "", "-f", c.ca)
	d.Authorize(t)
	d.Stop()
	d.Lines = []string{"TrustedUserCAKeys " + c.ca + ".pub"}
	d.Start(t)
	return c
}

// lasts replaces the certificate with one that began ten minutes ago and expires after the given time.
func (c certified) lasts(left string) {
	c.t.Helper()
	gridsitetest.Keygen(c.t, "-s", c.ca, "-I", "the pilot's user", "-n", c.me, "-V", "-10m:"+left, c.d.SSH("id_ed25519.pub"))
}

// told lists the entries about credentials in the site's history.
func (w *world) told(id corral.SiteID) (all []string) {
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectSite, int64(id), store.Page{})
		for _, e := range entries {
			if e.Event == "credential" {
				all = append(all, e.Reason)
			}
		}
		return err
	})
	return all
}

// A certificate expires while corrald is logged in with it: people are warned before, running jobs continue, and no
// new jobs are submitted, not even through a new login, which the real sshd would refuse. A new certificate in its
// place makes everything continue.
func TestSSHCertificateExpires(t *testing.T) {
	t.Parallel()
	c := newCertified(t)
	w := newWorld(t)
	w.reaches(backends(c.d.Home))
	t.Cleanup(func() { w.cfg.Reach.Close() })
	c.lasts("+1h")
	w.start()
	var s corral.Site
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: "hpc", Owner: "local", Contact: c.d.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "hpc")})
		return err
	})
	t.Cleanup(func() { w.remove(s.ID) })
	w.siteIs(s.ID, corral.SiteReady)
	first := w.glidein(s.ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(first.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })

	c.lasts("+20s")
	c.d.Stop()
	c.d.Start(t) // to log in with it
	w.until("warnings", func() bool {
		said := strings.Join(w.told(s.ID), "\n")
		return strings.Contains(said, " expires at ") && strings.Contains(said, " expired at ")
	})
	second := w.glidein(s.ID, resubmit.Policy{})
	waits := func() bool {
		g := w.glideinNow(second.ID)
		return g.State == corral.GlideinWaiting && strings.Contains(g.Reason, "id_ed25519-cert.pub (the pilot's user) expired at ")
	}
	w.until("the glidein to wait for a certificate", waits)
	if why := w.siteNow(s.ID).Trouble.Why; why != "" {
		t.Errorf("the connection that stands is in trouble: %s", why)
	}

	c.d.Stop()
	c.d.Start(t)
	w.until("the login to be refused", func() bool {
		trouble := w.siteNow(s.ID).Trouble
		return trouble.LoginNeeded && strings.Contains(trouble.Why, "id_ed25519-cert.pub (the pilot's user) expired at ")
	})
	if n := len(w.glideinNow(second.ID).Attempts); n != 0 {
		t.Errorf("%d attempts were made meanwhile", n)
	}
	if g := w.glideinNow(first.ID); g.State != corral.GlideinActive {
		t.Errorf("the glidein that ran is %s", g.State)
	}

	renewed := time.Now()
	c.lasts("+1h")
	w.until("a worker of the second", func() bool {
		a := w.glideinNow(second.ID).Attempts
		return len(a) == 1 && a[0].Workers == 1
	})
	t.Logf("the second glidein has a worker %s after the renewal", time.Since(renewed))
	if said := w.told(s.ID); !strings.HasSuffix(said[len(said)-1], "was replaced") {
		t.Errorf("the history says %q", said)
	}
}

// An expired certificate does not matter if the site accepts another key.
func TestSSHKeyInsteadOfAnExpiredCertificate(t *testing.T) {
	t.Parallel()
	c := newCertified(t)
	w := newWorld(t)
	w.reaches(backends(c.d.Home))
	t.Cleanup(func() { w.cfg.Reach.Close() })
	c.lasts("+1h")
	w.start()
	var s corral.Site
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: "hpc", Owner: "local", Contact: c.d.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "hpc")})
		return err
	})
	t.Cleanup(func() { w.remove(s.ID) })
	w.siteIs(s.ID, corral.SiteReady)
	c.d.Authorize(t, c.d.NewKey(t, ""))
	c.lasts("-1m")
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	if got := w.cfg.Reach.Credentials.Of(s); len(got) != 1 || got[0].Kind != credential.SSHKey {
		t.Errorf("let in by %v, want the key", got)
	}
}
