package gridsitetest

import (
	"regexp"
	"slices"
	"strings"
)

// everyProcess prints arguments and environment of all processes at the site that we may look at,
// each under the name of its file. What to look for is not in it, so that it cannot find itself.
const everyProcess = `head -n 99999 /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n'`

var heading = regexp.MustCompile(`(?m)^==> /proc/([0-9]+)/(?:cmdline|environ) <==\n`)

// find lists the pids of the live processes with a line in their arguments or environment that match
// accepts. It does not use the dialect's own means of looking, so that it can contradict them.
func (s *site) find(match func(line string) bool) []string {
	s.Helper()
	text := string(s.sh(everyProcess).Stdout)
	marks := heading.FindAllStringSubmatchIndex(text, -1)
	var pids []string
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		if slices.ContainsFunc(strings.Split(text[m[1]:end], "\n"), match) {
			pids = append(pids, text[m[2]:m[3]])
		}
	}
	if len(marks) == 0 {
		s.Fatal("no process at the site may be looked at")
	}
	return pids
}

// processes lists the live processes of a job that carry its mark, keepers included.
func (s *site) processes(tag string) []string {
	s.Helper()
	mark := "CORRAL_JOB_TAG=" + s.full(tag)
	return s.find(func(line string) bool { return line == mark })
}

// sleepers lists the live processes that any job of this test put to sleep with s.sleep, whatever
// became of their session and environment.
func (s *site) sleepers() []string {
	s.Helper()
	return s.find(func(line string) bool { return line == s.seconds })
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
