//go:build sites

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/kit/programs"
)

// TestSiteScripts runs testdata/sites/*.txtar, which use real sites. In addition to the features of TestScripts,
// $HTCONDOR is a real HTCondor, $PEERS contains the programs of scripts/peers, and the following commands exist:
//
//	web FOLDER               serve a folder, at the URL $WEB
//	sshd start|stop          a site behind ssh, whose contact is $SSHD; the key of its user is in $HOME/.ssh,
//	                         and the keys that it lets in are in $SSHDIR/authorized_keys
func TestSiteScripts(t *testing.T) {
	folders := map[string]string{}
	for name, setUp := range map[string]func() (string, error){"HTCONDOR": programs.HTCondor, "PEERS": programs.Peers} {
		folder, err := setUp()
		if err != nil {
			t.Fatal(err)
		}
		folders[name] = folder
	}
	p := scripts(t, "testdata/sites")
	setUp := p.Setup
	p.Setup = func(e *testscript.Env) error {
		for name, folder := range folders {
			e.Setenv(name, folder)
		}
		e.Values[sshdOf] = &gridsitetest.SSHD{}
		return setUp(e)
	}
	p.Cmds["sshd"] = func(ts *testscript.TestScript, _ bool, args []string) { sshdCmd(t, ts, args[0]) }
	p.Cmds["web"] = func(ts *testscript.TestScript, _ bool, args []string) {
		s := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
		ts.Setenv("WEB", s.URL)
		ts.Defer(s.Close)
	}
	testscript.Run(t, p)
}

// sshdOf is the key of a script's sshd.
const sshdOf = "sshd"

// sshdCmd starts an sshd for a script, or ends it with all its connections.
func sshdCmd(t *testing.T, ts *testscript.TestScript, verb string) {
	d := ts.Value(sshdOf).(*gridsitetest.SSHD)
	switch {
	case verb == "stop":
		d.Stop()
		return
	case d.Home != "": // the sshd was stopped
		d.Start(t)
		ts.Defer(d.Stop)
		return
	}
	*d = *gridsitetest.StartSSHD(t)
	ts.Setenv("SSHD", d.Contact())
	ts.Setenv("SSHDIR", d.Dir)
	ts.Check(os.Remove(d.SSH("known_hosts")))
	ts.Check(os.Symlink(d.SSH(""), ts.Getenv("HOME")+"/.ssh"))
}
