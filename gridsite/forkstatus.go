package gridsite

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parsePoll reads what poll.sh prints. It takes nothing that is not whole: an answer cut short must
// not look like jobs that the site does not know.
func parsePoll(out []byte) (map[string]JobStatus, error) {
	body, ok := bytes.CutSuffix(out, []byte("end\n"))
	if !ok || len(body) > 0 && body[len(body)-1] != '\n' {
		return nil, fmt.Errorf("the answer was cut short")
	}
	jobs := map[string]JobStatus{}
	for line := range strings.Lines(string(body)) {
		job, err := parseStatus(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		jobs[job.Tag] = job
	}
	return jobs, nil
}

// parseStatus reads TAG ID running STARTED, or TAG ID ended STARTED ENDED EXIT KILLED.
func parseStatus(fields []string) (JobStatus, error) {
	phases := map[int]Phase{4: Running, 7: Ended}
	phase, ok := phases[len(fields)]
	if !ok || fields[2] != string(phase) || !tagPattern.MatchString(fields[0]) || !forkID.MatchString(fields[1]) {
		return JobStatus{}, fmt.Errorf("not a job's status")
	}
	job := JobStatus{Tag: fields[0], ID: fields[1], Phase: phase}
	var err error
	if job.StartedAt, err = parseTime(fields[3]); err != nil || phase == Running {
		return job, err
	}
	if job.EndedAt, err = parseTime(fields[4]); err != nil {
		return job, err
	}
	if job.Exit, err = parseExit(fields[5]); err != nil {
		return job, err
	}
	job.Killed, err = parseKilled(fields[6])
	return job, err
}

// parseTime reads seconds since 1970, with a fraction where the site's date(1) knows %N.
func parseTime(s string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q: %w", s, err)
	}
	ns, err := strconv.ParseUint(fraction, 10, 64)
	if err != nil || len(fraction) != 9 {
		ns = 0
	}
	return time.Unix(sec, int64(ns)).UTC(), nil
}

func parseExit(s string) (*int, error) {
	if s == "-" {
		return nil, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("exit status: %w", err)
	}
	exit := int(n)
	return &exit, nil
}

func parseKilled(s string) (Killed, error) {
	switch k := Killed(s); k {
	case ByWalltime, ByCancel, ByDisappeared, ByPreemption, ByNode, BySite:
		return k, nil
	case "-":
		return NotKilled, nil
	default:
		return NotKilled, fmt.Errorf("unknown end %q", s)
	}
}
