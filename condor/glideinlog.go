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

// A GlideinLog follows what the daemons of a glidein on this machine write of themselves. It is how one knows that a
// glidein is in its pool without asking the pool, which would take a program that glideins do not need. Its methods
// belong to one goroutine.
//
// The lines that count are those of HTCondor's security layer, which names each command before it sends it and then
// says whether that went well; glidein.conf has the daemons write them.
type GlideinLog struct {
	master, startd tail

	Asked    bool      // the startd has asked the pool to take it in
	Joined   bool      // the pool took the startd in, when it last asked
	Refused  string    // the pool's answer if it was no, in HTCondor's words
	Refusals int       // how often it was no, one after the other
	Ended    string    // how the startd ended, once it has
	Worked   time.Time // when a job was last begun or ended, or seen to run
	Reread   bool      // the startd has read its configuration again
	Retold   bool      // and the pool has taken what it says of itself since

	command  string            // which the startd is sending
	activity map[string]string // :: slot → what it does
	words    string            // the last line that something went wrong in
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

// Look takes in what was written since the last look.
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

// Busy reports whether a slot runs a job, or clears one away.
func (l *GlideinLog) Busy() bool {
	for _, a := range l.activity {
		if a != "Idle" {
			return true
		}
	}
	return false
}

// Words returns the last line in which something went wrong; "" if there was none.
func (l *GlideinLog) Words() string { return l.words }

// Last returns the last lines that were written, for people.
func (l *GlideinLog) Last() []string { return l.last }

func (l *GlideinLog) keep(line string) {
	const most = 20
	if l.last = append(l.last, line); len(l.last) > most {
		l.last = l.last[1:]
	}
}

var (
	// Commands are sent one after the other: what is said of a connection is said of the last one named. One that needs
	// more than one packet is resumed.
	sending = regexp.MustCompile(`^SECMAN: (?:resuming )?command \d+ (\w+) to `)
	// A slot's activity, with or without its state.
	changing = regexp.MustCompile(`^(slot\S+): Changing (?:state and )?activity: \S+ -> (?:\w+/)?(\w+)`)
	deleting = regexp.MustCompile(`^(slot\S+): Changing state: \w+ -> Delete`)
	// How the master says that its startd is gone.
	gone = regexp.MustCompile(`^The STARTD \(pid \d+\) (.*)`)
	// What is worth being told if all goes wrong.
	trouble = regexp.MustCompile(`(?i)error|fail|denied|can.?t |cannot|unable|not found|no such`)
	// What sounds as bad and means nothing in a glidein.
	harmless = regexp.MustCompile(`passwd_cache|Utmp|hibernation|Failed to request a new token|` +
		`will try to get a token request|Failed to start non-blocking`)
)

// hearStartd takes in one line of the startd's log: which command it sends, how that went, and what its slots do.
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

// hearMaster takes in one line of the master's log: it alone says how a startd that was killed has ended.
func (l *GlideinLog) hearMaster(line string) {
	if m := gone.FindStringSubmatch(line); m != nil {
		l.Ended = m[1]
		return
	}
	l.listen(line)
}

// listen keeps a line that says that something went wrong.
func (l *GlideinLog) listen(line string) {
	if trouble.MatchString(line) && !harmless.MatchString(line) && !strings.Contains(line, "PERMISSION GRANTED") {
		l.words = line
	}
}

// refusal reports whether an error of a connection says that the other side was there and that our token is not good
// enough: the pool does not know it, or it lacks the right. Without any token there is no connection.
func refusal(line string) bool {
	return strings.Contains(line, `Received "DENIED"`) ||
		strings.Contains(line, "AUTHENTICATE:1004:Failed to authenticate using IDTOKENS") ||
		strings.Contains(line, "The security policy is invalid")
}

// A tail reads a daemon's log as it grows, and the next one when it was rotated.
type tail struct {
	path string
	file *os.File
	rest []byte // a line that is not complete
}

const stampLength = len("11/21/26 23:47:03 ")

// lines yields the lines that are new, without the time that they begin with.
func (t *tail) lines() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for t.open() {
			b, _ := io.ReadAll(t.file) // what was read before an error counts
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

// open opens the log, which a daemon that has just been started may not have made yet.
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

// Close ends the following.
func (l *GlideinLog) Close() {
	for _, t := range []*tail{&l.master, &l.startd} {
		if t.file != nil {
			t.file.Close()
		}
	}
}
