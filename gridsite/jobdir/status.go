package jobdir

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/gridsite"
)

// ParseTime reads seconds since 1970, with a fraction where the site's date(1) knows %N.
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

// stateName is a word that a batch system has for the state of a job.
var stateName = regexp.MustCompile(`^[A-Z][A-Z_]{0,31}$`)

// ParseEnd reads the end of a status, the words ENDED EXIT KILLED, into that of a job. Behind KILLED and a colon may
// stand the batch system's own word for this end.
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
		return fmt.Errorf("%q is no state of a batch system", says)
	}
	job.Says = says
	return nil
}

// parseExit reads an exit status; a dash says that none is known.
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

// parseKilled reads who ended the job; a dash says that it ended by itself. A word that only a later version knows is
// an error, and not an end by itself.
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
