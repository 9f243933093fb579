package server

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Limits of what may be asked for, beside the ranges of numbers.
const (
	maxLabels  = 64
	maxBrokers = 16
	maxText    = 256 // bytes of a label's value and of what is meant for a batch system
)

var (
	nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	keyRule  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)
	digits   = regexp.MustCompile(`^[0-9]+$`)
)

// A checker keeps the first thing that is wrong with a request.
type checker struct{ err error }

func (k *checker) invalid(bad bool, place, format string, args ...any) {
	if bad && k.err == nil {
		k.err = corral.ErrorAt(corral.Invalid, place, format, args...)
	}
}

func (k *checker) unsatisfiable(bad bool, place, format string, args ...any) {
	if bad && k.err == nil {
		k.err = corral.ErrorAt(corral.Unsatisfiable, place, format, args...)
	}
}

// name checks the name of a site or cluster. It is no number, because a number in its place is an id.
func (k *checker) name(place, name string) {
	k.invalid(!nameRule.MatchString(name), place,
		"%.80q is no name: want 1 to 63 of a-z, 0-9, '.', '_' and '-', the first a letter or digit", name)
	k.invalid(digits.MatchString(name), place, "%q is a number, which would be taken for an id", name)
}

// absolute checks a path on this machine, if there is one.
func (k *checker) absolute(place, path string) {
	k.invalid(path != "" && !filepath.IsAbs(path), place, "%.80q is not an absolute path", path)
}

// text checks a word that is handed to a batch system.
func (k *checker) text(place, s string) {
	k.invalid(len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl), place,
		"want at most %d bytes without control characters", maxText)
}

func (k *checker) labels(labels map[string]string) {
	k.invalid(len(labels) > maxLabels, "labels", "%d are more than %d", len(labels), maxLabels)
	for key, value := range labels {
		k.invalid(!keyRule.MatchString(key), "labels",
			"%.80q is no key: want 1 to 63 letters, digits, '.', '_', '/' and '-', the first a letter or digit", key)
		k.text("labels."+key, value)
	}
}

// orDefault is what was asked for, or the default.
func orDefault[T comparable](asked, otherwise T) T {
	var zero T
	if asked == zero {
		return otherwise
	}
	return asked
}

// defaultCluster is where a glidein or run without a cluster goes.
const defaultCluster = "default"

// checkGlidein checks what needs no look at the store.
func checkGlidein(in api.NewGlidein, now time.Time) error {
	var k checker
	k.invalid(in.Site == "", "site", "missing")
	k.invalid(in.Overlap != 0 && in.Overlap >= in.Walltime, "overlap_s",
		"%s is not between 0 and the walltime", in.Overlap)
	k.invalid(in.NotBefore.After(now.Add(time.Duration(maxSpan))), "not_before", "%s is more than %s ahead", in.NotBefore.Format(time.RFC3339), maxSpan)
	k.broker(in)
	k.labels(in.Labels)
	k.options(in.BatchOptions)
	return k.err
}

// broker checks how workers are to be reached, and what they are to offer.
func (k *checker) broker(in api.NewGlidein) {
	k.invalid(in.Broker != "" && !slices.Contains(corral.BrokerModes, in.Broker), "broker", "%.80q is none of %s", in.Broker, words(corral.BrokerModes))
	k.invalid(in.Slots != "" && !slices.Contains(corral.SlotModes, in.Slots), "slots", "%.80q is none of %s", in.Slots, words(corral.SlotModes))
	k.invalid(len(in.CCB) > maxBrokers, "ccb", "%d are more than %d", len(in.CCB), maxBrokers)
	k.invalid(len(in.CCB) > 0 && (in.Broker == corral.BrokerNone || in.Broker == corral.BrokerRelay), "ccb",
		"goes with broker %s or %s, not %s", corral.BrokerAuto, corral.BrokerCCB, in.Broker)
	for _, address := range in.CCB {
		k.hostPort("ccb", address)
	}
}

// words lists what there is to choose from.
func words[S ~string](known []S) string {
	var all []string
	for _, w := range known {
		all = append(all, string(w))
	}
	return strings.Join(all, ", ")
}
