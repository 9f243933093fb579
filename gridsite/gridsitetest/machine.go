package gridsitetest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// A machine is where the jobs of a test run, looked at beside the batch system: what the dialect says of its jobs is
// compared with the processes that there are.
type machine struct {
	*testing.T
	conn gridsite.Conn
	flag string // a file that lets go what waits for it
}

// everyProcess prints arguments and environment of all processes at the site that we may look at,
// each under the name of its file. What to look for is not in it, so that it cannot find itself.
const everyProcess = `head -n 99999 /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n'`

// heading begins the name of a file, of which the process id is the next part.
const heading = "==> /proc/"

// find lists the pids of the live processes with this line in their arguments or environment. It does not use the
// dialect's own means of looking, so that it can contradict them.
func (m machine) find(line string) []string {
	m.Helper()
	text := string(m.sh(everyProcess).Stdout)
	if !strings.Contains(text, heading) {
		m.Fatal("no process at the site may be looked at")
	}
	var pids []string
	for at := 0; ; at++ {
		found := strings.Index(text[at:], "\n"+line+"\n")
		if found < 0 {
			return pids
		}
		at += found
		file := text[strings.LastIndex(text[:at+1], heading)+len(heading):]
		pid, _, _ := strings.Cut(file, "/")
		pids = append(pids, pid)
	}
}

// expectNone fails the test if one of these processes is left.
func (m machine) expectNone(what string, pids []string) {
	m.Helper()
	if len(pids) > 0 {
		m.Errorf("%s: left are %v", what, pids)
	}
}

// untilReleased is a script that ends once the test has called release.
func (m machine) untilReleased() string {
	return "while [ ! -e " + shell.Quote(m.flag) + " ]; do sleep 0.05; done"
}

// release lets the jobs end that wait for it.
func (m machine) release() {
	m.Helper()
	m.Cleanup(func() { m.sh(`rm -f "$1"`, m.flag) })
	if res := m.sh(`: >"$1"`, m.flag); res.Exit != 0 {
		m.Fatalf("release: %s", res.Stderr)
	}
}

// sh runs a script at the site, beside the batch system.
func (m machine) sh(script string, args ...string) gridsite.Result {
	m.Helper()
	argv := append([]string{"sh", "-c", script, "sh"}, args...)
	res, err := m.conn.Run(m.cleanupContext(), gridsite.Command{Argv: argv})
	if err != nil {
		m.Fatalf("run at the site: %v", err)
	}
	return res
}

// cleanupContext serves the clean-up of a test too, when its own context is over.
func (m machine) cleanupContext() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.Context()), Patience)
	m.Cleanup(cancel)
	return ctx
}

// now is the time by the site's clock.
func (m machine) now() time.Time {
	sec, err := strconv.ParseInt(strings.TrimSpace(string(m.sh("date +%s").Stdout)), 10, 64)
	if err != nil {
		m.Fatalf("date at the site: %v", err)
	}
	return time.Unix(sec, 0)
}
