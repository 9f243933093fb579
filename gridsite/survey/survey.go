// Package survey asks a site, with one command, what it has and what it allows, for every dialect that can say so.
//
// A survey is a shell script: what all surveys share (lib.sh) and then the dialect's own. It prints sections, each
// between marks that nobody else prints; a section that is missing or was cut short leaves a note among the facts and
// no guess. The space at the root is read here, because it needs no batch system; the dialect reads its own sections.
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

// Ask runs the script of a dialect at a site and reads what the site says of the space at root. setup is text that the
// script needs before anything else; the caller reads the other sections.
func Ask(ctx context.Context, conn gridsite.Conn, root, setup, script string) (Sections, corral.SiteFacts, error) {
	facts := corral.SiteFacts{At: time.Now().UTC().Truncate(time.Second)}
	mark := "corral-" + rand.Text()
	argv := []string{"sh", "-c", setup + lib + script, "survey", mark, path.Clean(root)}
	res, err := gridsite.Run(ctx, conn, fault.SiteSurvey, gridsite.Command{Argv: argv})
	if err != nil {
		return nil, facts, fmt.Errorf("asking the site what it is like: %w", err)
	}
	said := parseSections(res.Stdout, mark)
	if len(said) == 0 {
		return nil, facts, corral.Errorf(corral.Failed, "the site does not say what it is like: exit status %d, %s",
			res.Exit, gridsite.LastLine(res.Stderr))
	}
	surveySpace(said, &facts)
	return said, facts, nil
}

// Sections is what a survey printed: by name, what a command said, and how it ended. Each stands for itself, so that
// one command which fails, or hangs, costs only what it would have told.
type Sections map[string]section

type section struct {
	out  string
	exit int
	why  string // the last thing that it complained about
}

// parseSections reads what stands between the marks. A profile may print anything before, between and after; a section
// whose end is missing was cut short, and counts as missing.
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

// Of returns what a command said, if it was there and did what it was asked.
func (s Sections) Of(name string) (string, error) {
	said, ok := s[name]
	switch {
	case !ok:
		return "", fmt.Errorf("no answer")
	case said.exit == 124: // timeout's own
		return "", fmt.Errorf("no answer within 20 s")
	case said.exit != 0 && said.why != "":
		return "", fmt.Errorf("%s", said.why)
	case said.exit != 0:
		return "", fmt.Errorf("exit status %d", said.exit)
	}
	return said.out, nil
}

// Note says what is not known, and why.
func Note(f *corral.SiteFacts, what string, why error) {
	f.Notes = append(f.Notes, gridsite.OneLine(what+" is not known: "+why.Error()))
}

// surveySpace reads what is free and what a quota leaves, whichever is less. quota(1) is missing at most sites, and
// prints nothing for users without a quota.
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
	if quota.exit == 127 || quota.out == "" { // most sites have none
		return
	}
	// quota's exit status is 1 for a user who is over it
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

// dfLine is POSIX's: device, KiB of it, used, free, percent, where it is mounted.
var dfLine = regexp.MustCompile(`^(\S.*?) +\d+ +\d+ +(-?\d+) +(?:\d+%|-) +/.*$`)

// parseDF reads the answer of df -P -k for one path. Less than nothing is free where only root may still write; to
// users that is 0.
func parseDF(out string) (device string, freeMiB int64, err error) {
	_, line, _ := strings.Cut(out, "\n")
	f := dfLine.FindStringSubmatch(line)
	if f == nil {
		return "", 0, fmt.Errorf("df said %q", gridsite.OneLine(out))
	}
	kib, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("df said %q", gridsite.OneLine(out))
	}
	return f[1], max(0, kib>>10), nil
}

// quotaLine is one device in the answer of quota -w -p: KiB that are used, the soft and the hard limit, and until when
// it may be over the soft one; then the same of files. A star is at what is over a limit.
var quotaLine = regexp.MustCompile(`^ *(\S.*?) +(\d+)\*? +(\d+) +(\d+) +(\d+) +\d+\*? +\d+ +\d+ +\d+ *$`)

// parseQuota returns how many KiB the user, and each group that has a quota, may still write to the device; ok is
// false if there is no limit.
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
			return 0, false, fmt.Errorf("quota said %q", gridsite.OneLine(line))
		}
		var n [3]int64 // used, soft, hard
		for i := range n {
			if n[i], err = strconv.ParseInt(f[2+i], 10, 64); err != nil {
				return 0, false, fmt.Errorf("quota said %q", gridsite.OneLine(line))
			}
		}
		limit := cmp.Or(n[2], n[1])
		if f[1] == device && limit > 0 {
			leftKiB, ok = min(leftKiB, max(0, limit-n[0])), true
		}
	}
	return leftKiB, ok, nil
}
