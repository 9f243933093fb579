package eventlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRecord limits one record, so that a file other than an event log is not read into memory.
const maxRecord = 1 << 20

// A BadRecord is a part of an event log that is not a record: truncated by a crash or a full disk, or foreign text.
// Reading continues after it.
type BadRecord struct {
	Offset int64 // its start, in bytes from the reader's start
	Raw    string
	Why    string
}

func (e *BadRecord) Error() string {
	return fmt.Sprintf("event log at byte %d: %s: %.60q", e.Offset, e.Why, e.Raw)
}

// A Reader reads an event log that may still be written.
type Reader struct {
	r      *bufio.Reader
	zone   *time.Location
	latest time.Time // the reference
	line   []byte    // the beginning of an incomplete line
	record []byte    // complete lines of an incomplete record
	offset int64     // start of record
}

// NewReader reads events from r. Logs have no time zone and, in the old format, no year. reference is a time not before
// the log's newest record (now, or the file's modification time), in the zone of the machine that writes it. A record
// in the old format gets the latest year in which it is at most a day after reference.
func NewReader(r io.Reader, reference time.Time) *Reader {
	return &Reader{r: bufio.NewReader(r), zone: reference.Location(), latest: reference}
}

// Offset returns the start of the record that Next reads next, in bytes from the start of r.
func (e *Reader) Offset() int64 { return e.offset }

// Next returns the next event. It returns [io.EOF] if there is no complete record yet, and may be called again when the
// file has grown. It returns a [*BadRecord] for text that is not a record, after which it may be called again. Any
// other error is the underlying reader's.
func (e *Reader) Next() (Event, error) {
	for {
		part, err := e.r.ReadSlice('\n')
		e.line = append(e.line, part...)
		tooLong := len(e.record)+len(e.line) > maxRecord
		switch {
		case tooLong:
			e.record, e.line = append(e.record, e.line...), nil
			return Event{}, e.bad("longer than any record")
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return Event{}, err
		}
		if event, done, err := e.take(); done {
			return event, err
		}
	}
}

// take adds the complete line to the record; done reports whether the line ended a record.
func (e *Reader) take() (event Event, done bool, err error) {
	line := e.line
	e.line = nil
	switch {
	case string(bytes.TrimRight(line, "\r\n")) == "...":
		event, why := parseRecord(string(e.record), e.zone, e.latest)
		e.record = append(e.record, line...)
		if why != "" {
			return Event{}, true, e.bad(why)
		}
		e.skip()
		return event, true, nil
	case len(e.record) > 0 && header.Match(line):
		err = e.bad("cut short by the next record")
		e.record = line
		return Event{}, true, err
	}
	e.record = append(e.record, line...)
	return Event{}, false, nil
}

// skip discards the record.
func (e *Reader) skip() {
	e.offset += int64(len(e.record))
	e.record = nil
}

// bad returns the record as a BadRecord, and continues after it.
func (e *Reader) bad(why string) error {
	err := &BadRecord{Offset: e.offset, Raw: string(e.record), Why: why}
	e.skip()
	return err
}

// header matches the start of a record in every version: number, job, and date and time in one of several formats,
// possibly with fractions of a second or in UTC.
var header = regexp.MustCompile(`^(\d{3}) \((\d+)\.(\d+)\.(-?\d+)\) ` +
	`(\d{4}-\d\d-\d\d|\d\d/\d\d(?:/\d\d)?)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(Z?) `)

// parseRecord parses a record; why describes an error in it, and is empty if there is none.
func parseRecord(raw string, zone *time.Location, latest time.Time) (event Event, why string) {
	raw = strings.TrimRight(strings.TrimLeft(raw, "\r\n"), "\r\n")
	first, rest, _ := strings.Cut(raw, "\n")
	m := header.FindStringSubmatch(first + " ") // the time may be the end of the line
	if m == nil {
		return Event{}, "no event starts like this"
	}
	event = Event{Raw: raw}
	var err1, err2, err3 error
	event.Number, err1 = strconv.Atoi(m[1])
	event.Job.Cluster, err2 = strconv.Atoi(m[2])
	event.Job.Proc, err3 = strconv.Atoi(m[3])
	if err := errors.Join(err1, err2, err3); err != nil {
		return Event{}, "a job number that is too large"
	}
	if m[7] == "Z" {
		zone = time.UTC
	}
	at, err := parseTime(m[5], m[6], zone, latest)
	if err != nil {
		return Event{}, "no such time"
	}
	event.Time = at
	if read := details[event.Number]; read != nil {
		event.Detail = read(lines(first[min(len(m[0]), len(first)):], rest))
	}
	return event, ""
}

// lines returns a body of the rest of the first line and the following lines.
func lines(first, rest string) body {
	b := body{strings.TrimSpace(first)}
	for l := range strings.Lines(rest) {
		b = append(b, strings.TrimSpace(l))
	}
	return b
}

// parseTime parses the three date formats of HTCondor's versions. The oldest has no year; parseTime uses the latest
// year in which the time is at most a day after latest.
func parseTime(date, clock string, zone *time.Location, latest time.Time) (time.Time, error) {
	switch len(date) {
	case len("2006-01-02"):
		return time.ParseInLocation("2006-01-02 15:04:05", date+" "+clock, zone)
	case len("01/02/06"):
		return time.ParseInLocation("01/02/06 15:04:05", date+" "+clock, zone)
	}
	// The 29th of February is in the preceding leap year, at most eight years ago.
	for year := latest.Year() + 1; year >= latest.Year()-8; year-- {
		at, err := time.ParseInLocation("2006/01/02 15:04:05", fmt.Sprintf("%04d/%s %s", year, date, clock), zone)
		if err == nil && !at.After(latest.Add(24*time.Hour)) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("no year has %s", date)
}
