package jobdir

import (
	"fmt"
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

// ParseEnd reads the end of a status, the words ENDED EXIT KILLED, into that of a job.
func ParseEnd(job *gridsite.JobStatus, words []string) (err error) {
	if job.EndedAt, err = ParseTime(words[0]); err != nil {
		return err
	}
	if job.Exit, err = parseExit(words[1]); err != nil {
		return err
	}
	job.Killed, err = parseKilled(words[2])
	return err
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
		gridsite.BySite:
		return k, nil
	case "-":
		return gridsite.NotKilled, nil
	default:
		return gridsite.NotKilled, fmt.Errorf("unknown end %q", s)
	}
}
