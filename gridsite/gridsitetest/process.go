package gridsitetest

import "strings"

// everyProcess prints arguments and environment of all processes at the site that we may look at,
// each under the name of its file. What to look for is not in it, so that it cannot find itself.
const everyProcess = `head -n 99999 /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n'`

// heading begins the name of a file, of which the process id is the next part.
const heading = "==> /proc/"

// find lists the pids of the live processes with this line in their arguments or environment. It does not use the
// dialect's own means of looking, so that it can contradict them.
func (s *site) find(line string) []string {
	s.Helper()
	text := string(s.sh(everyProcess).Stdout)
	if !strings.Contains(text, heading) {
		s.Fatal("no process at the site may be looked at")
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

// processes lists the live processes of a job that carry its mark, keepers included.
func (s *site) processes(tag string) []string {
	s.Helper()
	return s.find("CORRAL_JOB_TAG=" + s.full(tag))
}

// sleepers lists the live processes that any job of this test put to sleep with s.sleep, whatever
// became of their session and environment.
func (s *site) sleepers() []string {
	s.Helper()
	return s.find(s.seconds)
}

func (s *site) expectNone(what string, pids []string) {
	s.Helper()
	if len(pids) > 0 {
		s.Errorf("%s: left are %v", what, pids)
	}
}

// sweep is the end of each test: it ends what a failed test left, and shows that an orderly one left
// nothing.
func (s *site) sweep() {
	for _, tag := range s.tags {
		if s.Failed() {
			if err := s.batch.Cancel(s.cleanupContext(), s.full(tag), 0); err != nil {
				s.Errorf("Cancel(%s): %v", tag, err)
			}
		}
		s.await("every process of "+tag+" to go", func() bool { return len(s.processes(tag)) == 0 })
	}
	s.expectNone("after the test", s.sleepers())
}
