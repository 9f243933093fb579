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

// A machine is the machine on which a test's jobs run. Tests inspect it independently of the batch system, to compare
// the dialect's reports on its jobs with the actual processes.
type machine struct {
	*testing.T
	conn gridsite.Conn
	flag string // a file that releases waiting jobs
}

// everyProcess prints the arguments and environments of all readable processes at the site, each under the name of its
// file. The script does not contain the text to search for, so its own process is not found.
const everyProcess = `head -n 99999 /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n'`

// heading begins the name of a file; the process id follows it.
const heading = "==> /proc/"

// find lists the pids of the live processes with this line in their arguments or environment. It does not use the
// dialect's own method, so that it can contradict the dialect.
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

// expectNone fails the test if any of these processes exists.
func (m machine) expectNone(what string, pids []string) {
	m.Helper()
	if len(pids) > 0 {
		m.Errorf("%s: still running: %v", what, pids)
	}
}

// untilReleased returns a script that ends once the test has called release.
func (m machine) untilReleased() string {
	return "while [ ! -e " + shell.Quote(m.flag) + " ]; do sleep 0.05; done"
}

// release ends the jobs that wait for the release file.
func (m machine) release() {
	m.Helper()
	m.Cleanup(func() { m.sh(`rm -f "$1"`, m.flag) })
	if res := m.sh(`: >"$1"`, m.flag); res.Exit != 0 {
		m.Fatalf("release: %s", res.Stderr)
	}
}

// sh runs a script at the site, independently of the batch system.
func (m machine) sh(script string, args ...string) gridsite.Result {
	m.Helper()
	argv := append([]string{"sh", "-c", script, "sh"}, args...)
	res, err := m.conn.Run(m.cleanupContext(), gridsite.Command{Argv: argv})
	if err != nil {
		m.Fatalf("run at the site: %v", err)
	}
	return res
}

// cleanupContext returns a context that can be used in a test's cleanup, when the test's own context has ended.
func (m machine) cleanupContext() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.Context()), Patience)
	m.Cleanup(cancel)
	return ctx
}

// now returns the time of the site's clock.
func (m machine) now() time.Time {
	sec, err := strconv.ParseInt(strings.TrimSpace(string(m.sh("date +%s").Stdout)), 10, 64)
	if err != nil {
		m.Fatalf("date at the site: %v", err)
	}
	return time.Unix(sec, 0)
}
