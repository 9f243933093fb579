package condor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logged is the log of a simulated glidein, to which the test appends.
type logged struct {
	*GlideinLog
	t   *testing.T
	dir string
}

func newLogged(t *testing.T) logged {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := logged{GlideinConfig{Dir: dir}.Log(), t, filepath.Join(dir, "log")}
	t.Cleanup(l.Close)
	return l
}

// write appends lines to one of the logs.
func (l logged) write(name string, lines ...string) {
	l.t.Helper()
	f, err := os.OpenFile(filepath.Join(l.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	for _, line := range lines {
		if _, err := f.WriteString("11/21/26 23:47:50 " + line + "\n"); err != nil {
			l.t.Fatal(err)
		}
	}
}

const (
	updating = "SECMAN: command 0 UPDATE_STARTD_AD to collector 127.0.0.1:29937 from TCP port 34901 (non-blocking)."
	resuming = "SECMAN: resuming command 0 UPDATE_STARTD_AD to collector 127.0.0.1:29937 from TCP port 34901 (non-blocking)."
	ready    = "SECMAN: resuming command 60043 DC_SET_READY to daemon at <127.0.0.1:43247> from TCP port 34197 (non-blocking)."
	success  = "SECMAN: startCommand succeeded."
)

func TestGlideinLogSaysWhenThePoolTookIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines   []string
		joined  bool
		refused string
	}{
		"nothing yet":        {nil, false, ""},
		"sent, not answered": {[]string{updating, "Initial update sent to collector(s)"}, false, ""},
		"another's success":  {[]string{updating, ready, success}, false, ""},
		"taken":              {[]string{updating, ready, resuming, success}, true, ""},
		"denied": {[]string{updating, resuming, `ERROR: SECMAN:2010:Received "DENIED" from server for user glidein@corral.pool using method IDTOKENS.`},
			false, `SECMAN:2010:Received "DENIED" from server for user glidein@corral.pool using method IDTOKENS.`},
		"unknown token": {[]string{resuming, "ERROR: AUTHENTICATE:1003:Failed to authenticate with any method|AUTHENTICATE:1004:Failed to authenticate using IDTOKENS"},
			false, "AUTHENTICATE:1003:Failed to authenticate with any method|AUTHENTICATE:1004:Failed to authenticate using IDTOKENS"},
		"collector away":     {[]string{updating, "ERROR: SECMAN:2003:TCP connection to collector 127.0.0.1:9 failed."}, false, ""},
		"away after it took": {[]string{resuming, success, updating, "ERROR: SECMAN:2003:TCP connection to collector 127.0.0.1:9 failed."}, false, ""},
		"taken once more": {[]string{updating, `ERROR: SECMAN:2010:Received "DENIED" from server for user x using method IDTOKENS.`,
			updating, resuming, success}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogged(t)
			l.write("StartLog", c.lines...)
			l.Look(time.Now())
			if l.Joined != c.joined || l.Refused != c.refused {
				t.Errorf("joined %v, refused %q, want %v, %q", l.Joined, l.Refused, c.joined, c.refused)
			}
		})
	}
}

func TestGlideinLogFollowsTheSlots(t *testing.T) {
	t.Parallel()
	l, now := newLogged(t), time.Now()
	for i, step := range []struct {
		line string
		busy bool
	}{
		{"slot1: Changing state: Owner -> Unclaimed", false},
		{"slot1_1: Changing state: Owner -> Claimed", false},
		{"slot1_1: Changing activity: Idle -> Busy", true},
		{"slot1_2: Changing activity: Idle -> Busy", true},
		{"slot1_1: Changing activity: Busy -> Idle", true},
		{"slot1_1: Changing state: Unclaimed -> Delete", true},
		{"slot1_2: Changing state and activity: Claimed/Idle -> Preempting/Vacating", true},
		{"slot1_2: Changing state and activity: Preempting/Vacating -> Owner/Idle", false},
		{"slot1_3: Changing activity: Idle -> Busy", true},
		{"slot1_3: Changing state: Unclaimed -> Delete", false},
	} {
		l.write("StartLog", step.line)
		l.Look(now.Add(time.Duration(i) * time.Second))
		if l.Busy() != step.busy {
			t.Errorf("after %q: busy %v", step.line, l.Busy())
		}
	}
	if want := now.Add(8 * time.Second); !l.Worked.Equal(want) {
		t.Errorf("worked %s, want %s", l.Worked, want)
	}
}

func TestGlideinLogIsReadWhole(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	l.Look(time.Now()) // the file does not exist yet
	l.write("StartLog", updating, "Got SIGHUP.  Re-reading config files.")
	half := filepath.Join(l.dir, "StartLog")
	l.Look(time.Now())
	if !l.Reread || !l.Asked || l.Joined {
		t.Errorf("reread %v, asked %v, joined %v", l.Reread, l.Asked, l.Joined)
	}
	f, err := os.OpenFile(half, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range []string{"11/21/26 23:47:50 SECMAN: startCom", "mand succeeded.\n"} {
		if l.Joined {
			t.Error("half a line was taken for a whole")
		}
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		l.Look(time.Now())
	}
	if !l.Joined {
		t.Error("a line that came in two parts was lost")
	}
	l.write("StartLog", "slot1: Changing activity: Idle -> Busy")
	if err := os.Rename(half, half+".old"); err != nil {
		t.Fatal(err)
	}
	l.write("StartLog", "slot2: Changing activity: Idle -> Busy", "slot1: Changing activity: Busy -> Idle")
	l.write("MasterLog", "Started DaemonCore process", "The STARTD (pid 1115) died due to signal 9 (Killed)")
	l.Look(time.Now())
	l.write("StartLog", "slot2: Changing activity: Busy -> Idle")
	l.Look(time.Now())
	if l.Busy() || l.Ended != "died due to signal 9 (Killed)" {
		t.Errorf("busy %v, ended %q", l.Busy(), l.Ended)
	}
}

func TestGlideinLogKeepsTheWordsThatMatter(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	if l.Words() != "" {
		t.Errorf("words %q of no log", l.Words())
	}
	l.write("StartLog", "attempt to connect to <192.0.2.1:9> failed: Invalid argument (connect errno = 22).",
		`passwd_cache::cache_uid(): getpwnam("condor") failed: user not found`,
		"Failed to start non-blocking update to <192.0.2.1:9>.")
	l.Look(time.Now())
	if !strings.HasPrefix(l.Words(), "attempt to connect to <192.0.2.1:9> failed") {
		t.Errorf("words %q", l.Words())
	}
}
