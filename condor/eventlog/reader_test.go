package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/condor/classad"
)

// newYear is the reference of most tests: shortly after the beginning of a year.
var newYear = time.Date(2026, 1, 2, 12, 0, 0, 0, time.FixedZone("CET", 3600))

// collect reads a log; errors appear in their place as text.
func collect(text string, reference time.Time) (events []Event, bad []string) {
	reader := NewReader(strings.NewReader(text), reference)
	for {
		event, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return events, bad
		case err != nil:
			bad = append(bad, err.Error())
		default:
			events = append(events, event)
		}
	}
}

func TestEventTimes(t *testing.T) {
	t.Parallel()
	tests := map[string]time.Time{
		"2025-12-31 23:59:59":        time.Date(2025, 12, 31, 23, 59, 59, 0, newYear.Location()),
		"2025-12-31 23:59:59.250":    time.Date(2025, 12, 31, 23, 59, 59, 250e6, newYear.Location()),
		"2025-12-31T23:59:59.25Z":    time.Date(2025, 12, 31, 23, 59, 59, 250e6, time.UTC),
		"2025-12-31 23:59:59.000001": time.Date(2025, 12, 31, 23, 59, 59, 1e3, newYear.Location()),
		"12/31 23:59:59":             time.Date(2025, 12, 31, 23, 59, 59, 0, newYear.Location()), // the previous year
		"01/02 11:00:00":             time.Date(2026, 1, 2, 11, 0, 0, 0, newYear.Location()),
		"01/03 11:00:00":             time.Date(2026, 1, 3, 11, 0, 0, 0, newYear.Location()), // a clock that is fast
		"01/04 11:00:00":             time.Date(2025, 1, 4, 11, 0, 0, 0, newYear.Location()),
		"02/29 01:00:00":             time.Date(2024, 2, 29, 1, 0, 0, 0, newYear.Location()),
		"12/31/25 23:59:59":          time.Date(2025, 12, 31, 23, 59, 59, 0, newYear.Location()),
	}
	for at, want := range tests {
		events, bad := collect("013 (7.1.0) "+at+" Job was released.\n\tby me\n...\n", newYear)
		if len(events) != 1 || len(bad) != 0 || !events[0].Time.Equal(want) {
			t.Errorf("%s: %v %v, want %v", at, events, bad, want)
		}
	}
	for _, at := range []string{"2025-13-01 00:00:00", "02/30 00:00:00", "12/31 25:00:00", "yesterday"} {
		if events, bad := collect("013 (7.1.0) "+at+" Job was released.\n...\n", newYear); len(events) != 0 || len(bad) != 1 {
			t.Errorf("%s: %v %v, want an error", at, events, bad)
		}
	}
}

func TestEventDetails(t *testing.T) {
	t.Parallel()
	tests := map[string]any{
		"000 T Job submitted from host: <1.2.3.4:5>\n    LogNotes: x":   Submitted{"<1.2.3.4:5>"},
		"001 T Job executing on host: <1.2.3.4:5>":                      Executing{"<1.2.3.4:5>", ""},
		"001 T Job executing on host: <1.2.3.4:5>\n\tSlotName: slot1@x": Executing{"<1.2.3.4:5>", "slot1@x"},
		"004 T Job was evicted.\n\t(0) Job was not checkpointed.\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n\t0  -  Run Bytes Sent By Job": Evicted{""},
		"004 T Job was evicted.\n\t(0) CPU times\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n\tReason: the machine goes":                    Evicted{"the machine goes"},
		"005 T Job terminated.\n\t(1) Normal termination (return value 3)":                                                                                Terminated{ReturnValue: 3},
		"005 T Job terminated.\n\t(1) Normal termination (return value 0)\n\t862  -  Run Bytes Sent By Job\n\t305  -  Run Bytes Received By Job":          Terminated{Sent: 862, Received: 305},
		"040 T Started transferring input files\n\tTransferring to host: <1.2.3.4:5>":                                                                     Transferring{},
		"040 T Finished transferring input files":                                                                                   Transferring{Done: true},
		"040 T Started transferring output files":                                                                                   Transferring{Output: true},
		"040 T Finished transferring output files":                                                                                  Transferring{Output: true, Done: true},
		"040 T Entered queue to transfer input files":                                                                               nil,
		"005 T Job terminated.\n\t(0) Abnormal termination (signal 11)\n\t(1) Corefile in: /x":                                      Terminated{Signal: 11},
		"005 T Job terminated.":                                                                                                     nil,
		"007 T Shadow exception!\n\tCan no longer talk\n\t0  -  Run Bytes Sent By Job":                                              ShadowException{"Can no longer talk"},
		"009 T Job was aborted by the user.\n\tvia condor_rm (by user x)":                                                           Aborted{"via condor_rm (by user x)"},
		"012 T Job was held.\n\tError from slot1@x: no such file\n\tCode 13 Subcode 2":                                              Held{"Error from slot1@x: no such file", 13, 2},
		"012 T Job was held.\n\tCode 1 Subcode 0":                                                                                   Held{"", 1, 0},
		"024 T Job reconnection failed\n    Job lease expired\n    Can not reconnect to slot1@x, rescheduling job":                  ReconnectFailed{"Job lease expired", "slot1@x"},
		"028 T Job ad information event triggered.\nProc = 0\nEventDescription = \"a \\\"b\\\"\"\nSize = 1.5\nOK = true\nE = A + B": JobAd{classad.Ad{"Proc": int64(0), "EventDescription": `a "b"`, "Size": 1.5, "OK": true, "E": classad.Expr("A + B")}},
		"099 T Something new\n\tof the future":                                                                                      nil,
	}
	for text, want := range tests {
		text = strings.Replace(text, "T", "(7.1.0) 2026-01-02 00:00:00", 1)
		events, bad := collect(text+"\n...\n", newYear)
		if len(events) != 1 || len(bad) != 0 {
			t.Errorf("%s: %v %v, want one event", text, events, bad)
			continue
		}
		if diff := cmp.Diff(want, events[0].Detail); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if events[0].Raw != text || events[0].Job != (JobID{7, 1}) {
			t.Errorf("%s: event = %+v", text, events[0])
		}
	}
}

func TestEventsGoOnAfterDamage(t *testing.T) {
	t.Parallel()
	good := "000 (1.0.0) 2026-01-02 00:00:00 Job submitted from host: <a>\n...\n"
	tests := map[string]struct {
		text   string
		events int
		bad    string
	}{
		"empty":            {"", 0, ""},
		"whole":            {good + good, 2, ""},
		"windows":          {strings.ReplaceAll(good, "\n", "\r\n") + good, 2, ""},
		"half a line":      {good + "005 (1.0.0) 2026-", 1, ""},
		"half a record":    {good + "005 (1.0.0) 2026-01-02 00:00:00 Job terminated.\n\t(1) Norm", 1, ""},
		"no end":           {strings.TrimSuffix(good, "...\n") + good, 1, "cut short by the next"},
		"garbage":          {"\x00\x00garbage\n...\n" + good, 1, "starts like this"},
		"lone end":         {"...\n" + good, 1, "starts like this"},
		"huge job number":  {"000 (99999999999999999999.0.0) 2026-01-02 00:00:00 x\n...\n" + good, 1, "too large"},
		"no log at all":    {strings.Repeat("x", maxRecord+5) + "\n...\n" + good, 1, "longer than"},
		"blank lines last": {good + "\n\n", 1, ""},
	}
	for name, test := range tests {
		events, bad := collect(test.text, newYear)
		if len(events) != test.events || test.bad == "" && len(bad) != 0 || test.bad != "" && !strings.Contains(strings.Join(bad, "\n"), test.bad) {
			t.Errorf("%s: %d events, %q, want %d and %q", name, len(events), bad, test.events, test.bad)
		}
	}
}

// TestReaderResumes feeds a log byte by byte: no event arrives early, late or not at all, and a new reader can continue
// from every offset that the reader has reported.
func TestReaderResumes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/events.log")
	if err != nil {
		t.Fatal(err)
	}
	want, bad := collect(string(text), newYear)
	if len(bad) != 0 {
		t.Fatal(bad)
	}
	var grown bytes.Buffer
	reader := NewReader(&grown, newYear)
	var got []Event
	for _, c := range text {
		grown.WriteByte(c)
		event, err := reader.Next()
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event)
		rest, _ := collect(string(text[reader.Offset():]), newYear)
		if diff := cmp.Diff(append([]Event{}, want[len(got):]...), append([]Event{}, rest...)); diff != "" {
			t.Fatalf("from byte %d: %s", reader.Offset(), diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestEventsGolden reads logs of the real HTCondor; -update writes the golden files again.
func TestEventsGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/events.log")
	if err != nil {
		t.Fatal(err)
	}
	events, bad := collect(string(text), newYear)
	if len(bad) != 0 {
		t.Error(bad)
	}
	kinds := map[string]int{}
	for _, e := range events {
		kinds[fmt.Sprintf("%T", e.Detail)]++
	}
	delete(kinds, "<nil>") // such as the size of a job, which the starter writes a varying number of times
	want := map[string]int{"eventlog.Submitted": 5, "eventlog.Executing": 4, "eventlog.Terminated": 3, "eventlog.Held": 1, "eventlog.Aborted": 1}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestLogFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log := File{Path: path}
	record := func(cluster int) string {
		return fmt.Sprintf("000 (%d.0.0) 2026-01-02 00:00:00 Job submitted from host: <a>\n...\n", cluster)
	}
	write := func(flags int, text string) {
		f, err := os.OpenFile(path, flags|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want ...int) {
		t.Helper()
		var got []int
		for event, err := range log.New(newYear) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got = append(got, event.Job.Cluster)
			log = File{Path: path, Place: log.Place} // as if this process restarted here
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	rename := func(to string) {
		if err := os.Rename(path, path+to); err != nil {
			t.Fatal(err)
		}
	}
	expect("no file")
	write(os.O_APPEND, record(1)+record(2)+record(3)[:20])
	expect("two and a part", 1, 2)
	write(os.O_APPEND, record(3)[20:])
	expect("the rest", 3)
	expect("nothing new")
	write(os.O_APPEND, record(4))
	rename(".old")
	write(os.O_APPEND, record(5))
	expect("rotated", 4, 5)
	rename(".1")
	expect("rotated, nothing new yet")
	write(os.O_APPEND, record(6)+record(7))
	expect("rotated again", 6, 7)
	write(os.O_TRUNC, record(8))
	expect("truncated", 8)
	write(os.O_TRUNC, "xx"+record(9)+record(10))
	for _, err := range log.New(newYear) {
		if err == nil {
			t.Error("damage is an event")
		}
		break
	}
	expect("truncated and grown", 10)
}

func FuzzEvents(f *testing.F) {
	text, err := os.ReadFile("testdata/events.log")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("028 (1.0.0) 01/02 00:00:00 Job ad\nA = \"x\n...\n")
	f.Add("000 (1.0.0) 2026-01-02 00:00:00 \n...\n...\n000 (1.0.0) 2026-01-02 00:00:00 x")
	f.Fuzz(func(t *testing.T, text string) {
		size := 0
		reader := NewReader(strings.NewReader(text), newYear)
		for {
			event, err := reader.Next()
			var bad *BadRecord
			switch {
			case errors.Is(err, io.EOF):
				if size > len(text) {
					t.Errorf("%d bytes of records in %d bytes", size, len(text))
				}
				return
			case errors.As(err, &bad):
				size += len(bad.Raw)
			case err != nil:
				t.Fatal(err)
			default:
				size += len(event.Raw)
			}
		}
	})
}
