package condor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A GlideinLog follows the logs of a glidein's daemons on this machine. It shows that a glidein is in its pool without
// a query to the pool, which would need a program that glideins otherwise do not need. Its methods belong to one
// goroutine.
//
// The relevant lines are those of HTCondor's security layer, which names each command before sending it and then
// reports its success; glidein.conf makes the daemons write them.
type GlideinLog struct {
	master, startd tail

	Asked    bool      // the startd has sent its ad to the pool
	Joined   bool      // the pool accepted the startd's latest ad
	Refused  string    // the pool's refusal in HTCondor's words, or ""
	Refusals int       // number of consecutive refusals
	Ended    string    // how the startd ended, or ""
	Worked   time.Time // when a job last began, ended or was seen running
	Reread   bool      // the startd has read its configuration again
	Retold   bool      // and the pool has accepted its ad since

	command  string            // the command that the startd is sending
	activity map[string]string // :: slot → its activity
	words    string            // the last line that reported an error
	last     []string          // the last lines of both logs
}

// Log returns the log of a glidein that is about to be started in a new folder.
func (c GlideinConfig) Log() *GlideinLog {
	return &GlideinLog{
		master:   tail{path: filepath.Join(c.Dir, "log", "MasterLog")},
		startd:   tail{path: filepath.Join(c.Dir, "log", "StartLog")},
		activity: map[string]string{},
	}
}

// Look reads the lines written since the last call.
func (l *GlideinLog) Look(now time.Time) {
	for line := range l.startd.lines() {
		l.keep("startd: " + line)
		l.hearStartd(line, now)
	}
	for line := range l.master.lines() {
		l.keep("master: " + line)
		l.hearMaster(line)
	}
	if l.Busy() {
		l.Worked = now
	}
}

// Busy reports whether a slot runs a job or cleans up after one.
func (l *GlideinLog) Busy() bool {
	for _, a := range l.activity {
		if a != "Idle" {
			return true
		}
	}
	return false
}

// Words returns the last line that reported an error; "" if there was none.
func (l *GlideinLog) Words() string { return l.words }

// Last returns the last lines of both logs, for people.
func (l *GlideinLog) Last() []string { return l.last }

func (l *GlideinLog) keep(line string) {
	const most = 20
	if l.last = append(l.last, line); len(l.last) > most {
		l.last = l.last[1:]
	}
}

var (
	// Commands are sent in sequence: results refer to the last command named. A command that needs several packets is
	// resumed.
	sending = regexp.MustCompile(`^SECMAN: (?:resuming )?command \d+ (\w+) to `)
	// A slot's activity, with or without its state.
	changing = regexp.MustCompile(`^(slot\S+): Changing (?:state and )?activity: \S+ -> (?:\w+/)?(\w+)`)
	deleting = regexp.MustCompile(`^(slot\S+): Changing state: \w+ -> Delete`)
	// The master's message about the end of its startd.
	gone = regexp.MustCompile(`^The STARTD \(pid \d+\) (.*)`)
	// Lines that may explain a failure.
	trouble = regexp.MustCompile(`(?i)error|fail|denied|can.?t |cannot|unable|not found|no such`)
	// Lines that look like errors but are harmless in a glidein.
	harmless = regexp.MustCompile(`passwd_cache|Utmp|hibernation|Failed to request a new token|` +
		`will try to get a token request|Failed to start non-blocking`)
)

// hearStartd interprets one line of the startd's log: its commands, their results, and its slots' activities.
func (l *GlideinLog) hearStartd(line string, now time.Time) {
	const update = "UPDATE_STARTD_AD"
	if m := sending.FindStringSubmatch(line); m != nil {
		l.command = m[1]
		l.Asked = l.Asked || l.command == update
		return
	}
	if m := changing.FindStringSubmatch(line); m != nil {
		l.activity[m[1]], l.Worked = m[2], now
		return
	}
	if m := deleting.FindStringSubmatch(line); m != nil {
		delete(l.activity, m[1])
		return
	}
	switch {
	case strings.HasPrefix(line, "Got SIGHUP"):
		l.Reread = true
	case l.command == update && line == "SECMAN: startCommand succeeded.":
		l.Joined, l.Refused, l.Refusals = true, "", 0
		l.Retold = l.Reread
	case l.command == update && strings.HasPrefix(line, "ERROR: "):
		l.Joined, l.words = false, strings.TrimPrefix(line, "ERROR: ")
		if refusal(line) {
			l.Refused = l.words
			l.Refusals++
		}
		l.command = ""
	default:
		l.listen(line)
	}
}

// hearMaster interprets one line of the master's log, which alone reports how a killed startd ended.
func (l *GlideinLog) hearMaster(line string) {
	if m := gone.FindStringSubmatch(line); m != nil {
		l.Ended = m[1]
		return
	}
	l.listen(line)
}

// listen keeps a line that reports an error.
func (l *GlideinLog) listen(line string) {
	if trouble.MatchString(line) && !harmless.MatchString(line) && !strings.Contains(line, "PERMISSION GRANTED") {
		l.words = line
	}
}

// refusal reports whether a connection error means that the pool answered but rejected our token, because it is unknown
// or lacks the right. Without any token there is no connection.
func refusal(line string) bool {
	return strings.Contains(line, `Received "DENIED"`) ||
		strings.Contains(line, "AUTHENTICATE:1004:Failed to authenticate using IDTOKENS") ||
		strings.Contains(line, "The security policy is invalid")
}

// A tail follows a daemon's log as it grows, and continues with the next one after a rotation.
type tail struct {
	path string
	file *os.File
	rest []byte // an incomplete line
}

const stampLength = len("11/21/26 23:47:03 ")

// lines yields the new lines without their leading time.
func (t *tail) lines() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for t.open() {
			b, _ := io.ReadAll(t.file) // bytes read before an error count
			t.rest = append(t.rest, b...)
			for {
				line, rest, whole := bytes.Cut(t.rest, []byte("\n"))
				if !whole {
					break
				}
				t.rest = rest
				if text := string(line); len(text) > stampLength && !yield(text[stampLength:]) {
					return
				}
			}
			if t.current() {
				return
			}
			t.file.Close()
			t.file = nil
		}
	}
}

// open opens the log, which a newly started daemon may not have created yet.
func (t *tail) open() bool {
	if t.file == nil {
		if f, err := os.Open(t.path); err == nil {
			t.file = f
		}
	}
	return t.file != nil
}

// current reports whether the file still has its name.
func (t *tail) current() bool {
	mine, err1 := t.file.Stat()
	named, err2 := os.Stat(t.path)
	return err1 != nil || err2 != nil || os.SameFile(mine, named)
}

// Close stops following.
func (l *GlideinLog) Close() {
	for _, t := range []*tail{&l.master, &l.startd} {
		if t.file != nil {
			t.file.Close()
		}
	}
}
