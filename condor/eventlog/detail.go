package eventlog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/condor/classad"
)

// details parses the bodies of events, by number. A body has the lines of a record, the first one without header and
// time.
//
// Bodies are written for people, and differ between versions of HTCondor. Each parser finds known fields by the words
// before them and ignores the rest: a detail may lack a field, but an additional line does not lose an event.
var details = map[int]func(b body) any{
	0:  func(b body) any { return Submitted{b.after("Job submitted from host: ")} },
	1:  func(b body) any { return Executing{b.after("Job executing on host: "), b.after("SlotName: ")} },
	4:  func(b body) any { return Evicted{b.reason()} },
	5:  terminated,
	7:  func(b body) any { return ShadowException{b.line(1)} },
	9:  func(b body) any { return Aborted{b.line(1)} },
	12: held,
	24: reconnectFailed,
	28: jobAd,
	40: transferring,
}

// A body has the lines of an event without indentation.
type body []string

func (b body) line(i int) string {
	if i >= len(b) {
		return ""
	}
	return b[i]
}

// after returns the rest of the first line that starts with prefix.
func (b body) after(prefix string) string {
	for _, l := range b {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			return rest
		}
	}
	return ""
}

// reason returns the last line that is a sentence, not a flag, a table or an amount: this is where old and new versions
// put the reason.
func (b body) reason() string {
	why := ""
	for _, l := range b[min(1, len(b)):] {
		switch {
		case l == "", strings.HasPrefix(l, "("), strings.Contains(l, "  -  "),
			strings.HasPrefix(l, "Partitionable Resources"),
			strings.HasPrefix(l, "Code "), strings.Contains(l, " : "):
		default:
			why = strings.TrimPrefix(l, "Reason: ")
		}
	}
	return why
}

// scanLine sets values from the first line with that format.
func (b body) scanLine(format string, values ...any) bool {
	for _, l := range b {
		if n, _ := fmt.Sscanf(l, format, values...); n == len(values) {
			return true
		}
	}
	return false
}

// amount returns the number on the first line about what; 0 if there is none.
func (b body) amount(what string) (n int64) {
	for _, l := range b {
		if number, ok := strings.CutSuffix(l, "  -  "+what); ok {
			n, _ = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			return max(0, n)
		}
	}
	return 0
}

// terminated parses the return value or the signal, and the transferred bytes; nil if the body has neither of the first
// two.
func terminated(b body) any {
	t := Terminated{Sent: b.amount("Run Bytes Sent By Job"), Received: b.amount("Run Bytes Received By Job")}
	if b.scanLine("(1) Normal termination (return value %d)", &t.ReturnValue) ||
		b.scanLine("(0) Abnormal termination (signal %d)", &t.Signal) {
		return t
	}
	return nil // it ended, but the record has neither
}

// transferring parses which files are transferred; nil for those that wait for their turn, and for other texts.
func transferring(b body) any {
	switch b.line(0) {
	case "Started transferring input files":
		return Transferring{}
	case "Finished transferring input files":
		return Transferring{Done: true}
	case "Started transferring output files":
		return Transferring{Output: true}
	case "Finished transferring output files":
		return Transferring{Output: true, Done: true}
	}
	return nil
}

// held parses why a job is held. Old versions omit the code, and some holds have only a code.
func held(b body) any {
	h := Held{Reason: b.line(1)}
	if strings.HasPrefix(h.Reason, "Code ") {
		h.Reason = ""
	}
	b.scanLine("Code %d Subcode %d", &h.Code, &h.Subcode)
	return h
}

func reconnectFailed(b body) any {
	worker := strings.TrimSuffix(b.after("Can not reconnect to "), ", rescheduling job")
	return ReconnectFailed{b.line(1), worker}
}

func jobAd(b body) any {
	ad := classad.Ad{}
	for _, l := range b[min(1, len(b)):] {
		if name, value, ok := strings.Cut(l, "="); ok {
			ad[strings.TrimSpace(name)] = classad.ParseNew(value)
		}
	}
	return JobAd{ad}
}
