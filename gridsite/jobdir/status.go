package jobdir

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/gridsite"
)

// ParseTime parses seconds since 1970, with a fraction if the site's date(1) supports %N.
func ParseTime(s string) (time.Time, error) {
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

// stateName matches a batch system's word for the state of a job.
var stateName = regexp.MustCompile(`^[A-Z][A-Z_]{0,31}$`)

// ParseEnd parses the end of a status, the words ENDED EXIT KILLED, into a job's status. KILLED may be followed by a
// colon and the batch system's own word for this end.
func ParseEnd(job *gridsite.JobStatus, words []string) (err error) {
	if job.EndedAt, err = ParseTime(words[0]); err != nil {
		return err
	}
	if job.Exit, err = parseExit(words[1]); err != nil {
		return err
	}
	killed, says, _ := strings.Cut(words[2], ":")
	if job.Killed, err = parseKilled(killed); err != nil || says == "" {
		return err
	}
	if !stateName.MatchString(says) {
		return fmt.Errorf("%q is not a state of a batch system", says)
	}
	job.Says = says
	return nil
}

// parseExit parses an exit status; a dash means that it is unknown.
func parseExit(s string) (*int, error) {
	if s == "-" {
		return nil, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("exit status: %w", err)
	}
	return new(int(n)), nil
}

// parseKilled parses the cause of the job's end; a dash means that the job ended by itself. An unknown word, as from a
// later version, is an error, because the job must not count as ended by itself.
func parseKilled(s string) (gridsite.Killed, error) {
	switch k := gridsite.Killed(s); k {
	case gridsite.ByWalltime, gridsite.ByCancel, gridsite.ByDisappeared, gridsite.ByPreemption, gridsite.ByNode,
		gridsite.ByMemory, gridsite.BySite:
		return k, nil
	case "-":
		return gridsite.NotKilled, nil
	default:
		return gridsite.NotKilled, fmt.Errorf("unknown end %q", s)
	}
}
