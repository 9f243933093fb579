// Package survey queries a site's resources and limits with one command, for every dialect that can report them.
//
// A survey is a shell script: a part shared by all surveys (lib.sh), followed by the dialect's own. It prints sections
// between random marks. If a section is missing or truncated, the facts contain a note instead of a guess. The space at
// the root is read here, because it does not depend on the batch system; the dialect reads its own sections.
package survey

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/fault"
)

//go:embed lib.sh
var lib string

// Ask runs the script of a dialect at a site and reads the space at root. setup is text that must precede the script;
// the caller reads the other sections.
func Ask(ctx context.Context, conn gridsite.Conn, root, setup, script string) (Sections, corral.SiteFacts, error) {
	facts := corral.SiteFacts{At: time.Now().UTC().Truncate(time.Second)}
	mark := "corral-" + rand.Text()
	argv := []string{"sh", "-c", setup + lib + script, "survey", mark, path.Clean(root)}
	res, err := gridsite.Run(ctx, conn, fault.SiteSurvey, gridsite.Command{Argv: argv})
	if err != nil {
		return nil, facts, fmt.Errorf("surveying the site: %w", err)
	}
	said := parseSections(res.Stdout, mark)
	if len(said) == 0 {
		return nil, facts, corral.Errorf(corral.Failed, "the survey of the site failed: exit status %d, %s",
			res.Exit, gridsite.LastLine(res.Stderr))
	}
	surveySpace(said, &facts)
	return said, facts, nil
}

// Sections is the output of a survey: it maps the name of each section to the output and end of a command. The sections
// are independent, so that a command that fails or hangs affects only its own section.
type Sections map[string]section

type section struct {
	out  string
	exit int
	why  string // its last error message
}

// parseSections parses the text between the marks. A profile may print any text before, between and after the sections;
// a section without an end was truncated and counts as missing.
func parseSections(out []byte, mark string) Sections {
	all := Sections{}
	var name string
	var text []string
	for line := range strings.Lines(string(bytes.ToValidUTF8(out, []byte("?")))) {
		line = strings.TrimSuffix(line, "\n")
		words, marked := strings.CutPrefix(line, mark+" ")
		if !marked {
			text = append(text, line)
			continue
		}
		f := strings.SplitN(words, " ", 4)
		switch {
		case f[0] == "begin" && len(f) == 2:
			name, text = f[1], nil
		case f[0] == "end" && len(f) == 4 && f[1] == name && name != "":
			if exit, err := strconv.Atoi(f[2]); err == nil {
				all[name] = section{out: strings.TrimSpace(strings.Join(text, "\n")), exit: exit,
					why: gridsite.OneLine(f[3])}
			}
			name = ""
		}
	}
	return all
}

// Of returns a command's output if the command ran and succeeded.
func (s Sections) Of(name string) (string, error) {
	said, ok := s[name]
	switch {
	case !ok:
		return "", fmt.Errorf("no answer")
	case said.exit == 124: // the exit status of timeout(1)
		return "", fmt.Errorf("no answer within 20 s")
	case said.exit != 0 && said.why != "":
		return "", fmt.Errorf("%s", said.why)
	case said.exit != 0:
		return "", fmt.Errorf("exit status %d", said.exit)
	}
	return said.out, nil
}

// Note adds a note that something is not known, with the reason.
func Note(f *corral.SiteFacts, what string, why error) {
	f.Notes = append(f.Notes, gridsite.OneLine(what+" is not known: "+why.Error()))
}

// surveySpace reads the free space and the remaining quota, and records the smaller. Most sites do not have quota(1),
// which also prints nothing for users without a quota.
func surveySpace(said Sections, facts *corral.SiteFacts) {
	out, err := said.Of("space")
	var device string
	if err == nil {
		device, facts.FreeMiB, err = parseDF(out)
	}
	if err != nil {
		facts.FreeMiB = -1
		Note(facts, "the free space", err)
		return
	}
	quota := said["quota"]
	if quota.exit == 127 || quota.out == "" { // as at most sites
		return
	}
	// The exit status of quota is 1 for a user who exceeds it.
	left, ok, err := parseQuota(quota.out, device)
	switch {
	case err != nil:
		Note(facts, "the quota", err)
	case ok && left == 0:
		facts.FreeMiB = 0
		facts.Notes = append(facts.Notes, "the quota on "+device+" is used up")
	case ok:
		facts.QuotaMiB = max(1, left>>10)
		facts.FreeMiB = min(facts.FreeMiB, left>>10)
	}
}

// dfLine matches the format of POSIX: device, size in KiB, used, free, percent, mount point.
var dfLine = regexp.MustCompile(`^(\S.*?) +\d+ +\d+ +(-?\d+) +(?:\d+%|-) +/.*$`)

// parseDF parses the output of df -P -k for one path. The free space is negative if only the space reserved for root is
// left; for users this counts as 0.
func parseDF(out string) (device string, freeMiB int64, err error) {
	_, line, _ := strings.Cut(out, "\n")
	f := dfLine.FindStringSubmatch(line)
	if f == nil {
		return "", 0, fmt.Errorf("df printed %q", gridsite.OneLine(out))
	}
	kib, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("df printed %q", gridsite.OneLine(out))
	}
	return f[1], max(0, kib>>10), nil
}

// quotaLine matches a device in the output of quota -w -p: the used KiB, the soft and the hard limit, and the end of
// the grace period; then the same for files. A star marks a value over its limit.
var quotaLine = regexp.MustCompile(`^ *(\S.*?) +(\d+)\*? +(\d+) +(\d+) +(\d+) +\d+\*? +\d+ +\d+ +\d+ *$`)

// parseQuota returns the number of KiB that may still be written to the device under the quotas of the user and of each
// group; ok is false if there is no limit.
func parseQuota(out, device string) (leftKiB int64, ok bool, err error) {
	leftKiB = math.MaxInt64
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if head := strings.TrimSpace(line); head == "" || strings.HasPrefix(head, "Disk quotas for ") ||
			strings.HasPrefix(head, "Filesystem ") {
			continue
		}
		f := quotaLine.FindStringSubmatch(line)
		if f == nil {
			return 0, false, fmt.Errorf("quota printed %q", gridsite.OneLine(line))
		}
		var n [3]int64 // used, soft, hard
		for i := range n {
			if n[i], err = strconv.ParseInt(f[2+i], 10, 64); err != nil {
				return 0, false, fmt.Errorf("quota printed %q", gridsite.OneLine(line))
			}
		}
		limit := cmp.Or(n[2], n[1])
		if f[1] == device && limit > 0 {
			leftKiB, ok = min(leftKiB, max(0, limit-n[0])), true
		}
	}
	return leftKiB, ok, nil
}
