package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// An owner lives twice: alone on a central corrald, and beside twins, who have an object of the same name for each of
// hers, in every state. All that she sees, is told, is charged and is measured is the same, but for ids, times, tags,
// ports and paths, which are renamed in the order in which they appear.
func TestTwin(t *testing.T) {
	t.Parallel()
	alone := lifeOf(t, 7, nil)
	beside := lifeOf(t, 9, alone)
	for _, line := range strings.Split(beside.told.String(), "\n") {
		if ofTwin(line) {
			t.Errorf("she is told of a twin: %s", line)
		}
	}
	lives := [2][]string{alone.steps(), beside.steps()}
	for i := range min(len(lives[0]), len(lives[1])) {
		if diff := cmp.Diff(lives[0][i], lives[1][i]); diff != "" {
			command, _, _ := strings.Cut(lives[0][i], "\n")
			t.Errorf("%s: beside twins it is not what it is alone (-alone +beside):\n%s", command, diff)
		}
	}
	if len(lives[0]) != len(lives[1]) {
		t.Errorf("alone she does %d things, beside twins %d", len(lives[0]), len(lives[1]))
	}
	if found := beside.errors(); len(found) > 0 {
		t.Errorf("corrald's log has errors:\n%s", strings.Join(found, "\n"))
	}
	storetest.CheckOwners(t, beside.c.database())
}

// ofTwin reports whether a text names a twin or has the id of an object of hers. The number of a job of the batch system
// fork has the clock ticks since the machine's start, which resemble an id on the machine's first day.
func ofTwin(text string) bool {
	return strings.Contains(text, "twin") || storetest.IDs(8).MatchString(forkJob.ReplaceAllString(text, ""))
}

// A story is the life of ann, and what she was told in it.
type story struct {
	*user
	c     *central
	told  bytes.Buffer
	after string // a copy of the database, with all that she had
}

// lifeOf is a life, with ids that begin with a digit, beside twins made of what she had before, if there was a life before.
func lifeOf(t *testing.T, digit int, before *story) *story {
	t.Helper()
	s := &story{}
	s.c = newCentral(t, func(database string) {
		err := storetest.BeginLife(t.Context(), database, digit)
		if err == nil && before != nil {
			var closed net.Listener // an address at which nothing listens
			if closed, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
				contact := "ssh://twin@" + closed.Addr().String()
				_ = closed.Close()
				err = storetest.Twins{Life: before.after, Owner: "ann", Contact: contact, Dir: t.TempDir()}.Add(t.Context(), database)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}, "CORRALD_MACHINE_CPUS=4")
	t.Cleanup(s.c.stop) // the sites of twins cannot be cleaned up
	s.user = s.c.person(t, "ann", "--grant", "local")
	s.env = append(s.env, "COLUMNS=200")
	hears := s.listen()
	s.strangers()
	s.settle()
	s.glideins()
	s.plans()
	s.scales()
	s.ensembles()
	s.small()
	s.listing("")
	s.metrics()
	s.after = filepath.Join(t.TempDir(), "after.db")
	if err := storetest.Copy(t.Context(), s.c.database(), s.after); err != nil {
		t.Fatal(err)
	}
	s.leaves()
	hears()
	return s
}

// listen begins to listen to all events, and returns what ends that and notes of what kinds of objects, and of whose,
// something was told. How often depends on time.
func (s *story) listen() (end func()) {
	s.t.Helper()
	var heard bytes.Buffer
	cmd := s.command("events", "-o", "json")
	cmd.Stdout = &heard
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		var all []string
		for events := json.NewDecoder(&heard); ; {
			var e api.Event
			var of struct {
				Owner string `json:"owner"`
			}
			if events.Decode(&e) != nil {
				break
			}
			_ = json.Unmarshal(e.Data, &of) // some have no owner
			all = append(all, e.Kind+" "+of.Owner)
			if ofTwin(string(e.Data)) {
				s.t.Errorf("she hears of a twin: %s", e.Data)
			}
		}
		slices.Sort(all)
		fmt.Fprintf(&s.told, "$ events: %q\n", slices.Compact(all))
	}
}

// say runs a command and notes what she is told.
func (s *story) say(args ...string) answer {
	s.t.Helper()
	a := s.corral(args...)
	fmt.Fprintf(&s.told, "$ corral %s\n%s%s[%d]\n", strings.Join(args, " "), a.stdout, a.stderr, a.code)
	return a
}

// sorted is say of what comes in no certain order.
func (s *story) sorted(args ...string) {
	s.t.Helper()
	a := s.corral(args...)
	lines := strings.Split(newNames().rename(a.stdout+a.stderr), "\n")
	slices.Sort(lines)
	fmt.Fprintf(&s.told, "$ corral %s\n%s\n[%d]\n", strings.Join(args, " "), strings.Join(lines, "\n"), a.code)
}

// strangers: what she has not is not there, whatever others have.
func (s *story) strangers() {
	s.listing("before")
	for _, of := range [][]string{{"site", "show", "here"}, {"cluster", "show", "default"}, {"profile", "show", "mine"},
		{"glidein", "create", "--site", "here"}, {"cluster", "scale", "default", "--site", "here", "--max", "1"},
		{"glidein", "list", "--site", "here"}, {"site", "remove", "here"}, {"submit", "--", "true"}} {
		s.say(of...)
	}
}

// listing lists all kinds of objects, as JSON and as tables.
func (s *story) listing(flag string) {
	for _, noun := range []string{"site", "cluster", "glidein", "runs", "plan", "ensemble", "profile", "token"} {
		s.say(noun, "list", "-o", "json")
		if flag == "" {
			s.say(noun, "list", "--all")
		}
	}
	s.say("usage", "--by", "site", "-o", "json")
}

func (s *story) settle() {
	for range 2 { // the second time the name is used
		s.say("site", "create", "here", "--contact", "local:", "--batch", "fork", "--root", s.dir+"/root", "--price", "1USD/cpu-hour",
			"--allocation", "100USD", "--wait", "-q")
		s.say("cluster", "create", "default", "--kind", "embedded", "-q")
	}
	s.say("site", "show", "here", "-o", "json")
	s.say("cluster", "show", "default", "-o", "json")
}

// flow is a workflow of a few short tasks.
func (s *story) flow() string { return s.workflow("fold", steps(3, 10*time.Millisecond)...) }

// last is the id of the newest of a list.
func last[T any](s *story, id func(T) int64, args ...string) string {
	s.t.Helper()
	var newest int64
	for _, v := range read[[]T](s.user, append(args, "--all")...) {
		newest = max(newest, id(v))
	}
	return strconv.FormatInt(newest, 10)
}

func runID(r corral.Run) int64           { return int64(r.ID) }
func planID(p corral.Plan) int64         { return int64(p.ID) }
func ensembleID(e record.Ensemble) int64 { return int64(e.ID) }

func (s *story) glideins() {
	g := s.must("glidein", "create", "--site", "here", "--wait", "-q", "--label", "of=ann")
	s.say("run", s.flow(), "--progress", "none", "-q")
	run := last(s, runID, "runs", "list")
	s.say("runs", "show", run)
	s.sorted("runs", "tasks", run)
	s.say("glidein", "remove", g, "--now", "--wait", "-q")
	s.say("glidein", "show", g)
	s.sorted("glidein", "history", g)
	s.say("site", "ledger", "here")
	s.say("usage", "--csv")
}

func (s *story) plans() {
	s.say("plan", s.flow(), "--site", "here", "--deadline", "10m", "--default-runtime", "1m", "--clustering", "none", "--dry-run")
	s.say("run", s.flow(), "--auto", "--deadline", "10m", "--progress", "none", "-q")
	run, plan := last(s, runID, "runs", "list"), last(s, planID, "plan", "list")
	s.until("the plan is released", time.Minute, func() bool { return read[corral.Plan](s.user, "plan", "show", plan).State == corral.PlanReleased })
	s.gone()
	s.say("runs", "show", run)
	s.sorted("plan", "history", plan)
	s.say("site", "ledger", "here")
}

// gone waits until no pilot is left.
func (s *story) gone() {
	s.t.Helper()
	s.until("all pilots are gone", time.Minute, func() bool {
		return !slices.ContainsFunc(read[[]corral.Glidein](s.user, "glidein", "list"), func(g corral.Glidein) bool { return !g.State.Terminal() })
	})
}

func (s *story) scales() {
	s.say("cluster", "scale", "default", "--site", "here", "--max", "1", "--walltime", "10m")
	run := s.must("submit", "-q", "--stall", "2m", "--", "true")
	s.say("runs", "wait", run, "-q")
	s.say("runs", "show", run, "-o", "json")
	s.say("cluster", "scale", "default", "--off")
	s.gone()
	s.sorted("cluster", "history", "default")
}

func (s *story) ensembles() {
	s.say("ensemble", "run", s.flow(), "--site", "here", "--budget", "10USD", "--deadline", "10m", "--most", "1", "-q")
	e := last(s, ensembleID, "ensemble", "list")
	s.sorted("ensemble", "history", e)
	s.gone()
}

func (s *story) small() {
	s.say("profile", "save", "mine", "library:montage")
	s.say("profile", "save", "mine", "library:montage")
	s.say("profile", "show", "mine")
	s.say("plan", s.flow(), "--site", "here", "--deadline", "10m", "--profile", "mine", "--dry-run")
	s.say("plan", s.flow(), "--site", "here", "--deadline", "10m", "-q")
	s.say("token", "create", "laptop", "--out", s.dir+"/laptop", "-q")
	s.say("token", "create", "laptop", "--out", s.dir+"/laptop2", "-q")
	s.say("site", "wait", "here")
	s.say("site", "slots", "here")
	s.say("glidein", "create", "--site", "here", "--not-before", "2100-01-01T00:00:00Z", "-q")
	s.say("cluster", "scale", "default", "--site", "here", "--max", "1", "--walltime", "10m") // it is left
	s.say("site", "history", "here")
}

// metrics notes which series of hers there are. What they count depends on time, but for the states of objects.
func (s *story) metrics() {
	s.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.c.dir+"/run/corral/corrald.sock")
	}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://corrald/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.told, "$ GET /metrics: %s\n", resp.Status)
	if resp.StatusCode != http.StatusOK {
		fmt.Fprintf(&s.told, "%s\n", text)
	}
	for line := range strings.Lines(string(text)) {
		hers := strings.Contains(line, `owner="ann"`) || strings.Contains(line, `site="here"`) || strings.Contains(line, `cluster="default"`)
		if !hers || strings.Contains(line, "twin") || storetest.IDs(8).MatchString(line) {
			continue
		}
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.Contains(series, "seconds") || strings.Contains(series, "reconcile") {
			value = "N"
		}
		fmt.Fprintf(&s.told, "%s} %s\n", series, value)
	}
}

// leaves removes all, and lists what is left.
func (s *story) leaves() {
	s.say("cluster", "scale", "default", "--off")
	for _, g := range read[[]corral.Glidein](s.user, "glidein", "list") {
		s.say("glidein", "remove", id(g.ID), "--now", "--wait", "-q")
	}
	s.say("site", "remove", "here", "--wait", "-q")
	s.say("cluster", "remove", "default", "-q")
	s.say("profile", "remove", "mine", "-q")
	s.listing("after")
}

// errors are the lines of corrald's log that say so, but for those about objects of twins, which lack what is not in the
// store.
func (s *story) errors() (found []string) {
	log, _ := os.ReadFile(s.c.log())
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "twin") && !storetest.IDs(8).MatchString(line) {
			_, what, _ := strings.Cut(strings.TrimSpace(line), "level=ERROR ")
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// steps are what she did and was told, with names of its own for what differs from life to life.
func (s *story) steps() []string {
	text := strings.ReplaceAll(s.told.String(), s.dir, "HOME")
	return strings.Split(newNames().rename(strings.ReplaceAll(text, s.c.dir, "CORRALD")), "\n$ ")
}

// names are those that were given so far.
type names struct {
	given map[string]string // :: text → its name
	count map[string]int    // :: kind → how many have names
}

func newNames() *names { return &names{map[string]string{}, map[string]int{}} }

// name returns the name of a text, the next of its kind if it has none.
func (n *names) name(kind, text string) string {
	if n.given[text] == "" {
		n.count[kind]++
		n.given[text] = fmt.Sprintf("%s#%d", kind, n.count[kind])
	}
	return n.given[text]
}

var (
	ids       = regexp.MustCompile(`\b[79]\d{6}\b`)
	tag       = regexp.MustCompile(`corral-(pilot|setup|cleanup|probe)-[a-z2-7]+`)
	runDir    = regexp.MustCompile(`[a-z]+-\d{8}T\d{6}-[a-z0-9]+`)
	digest    = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	instant   = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?`)
	tiny      = regexp.MustCompile(`\b\d(\.\d+)?e-\d+\b`)
	early     = regexp.MustCompile(`(lease|pilot started|workers) (SUBMITTED|QUEUED|RUNNING)`) // the pilot may be faster than the queue tells
	clock     = regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`)
	forkJob   = regexp.MustCompile(`\b\d+\.\d{4,}\b`) // a job of the batch system fork
	forkStart = regexp.MustCompile(`\b\d{2,}\.\d{6,}\b`)
	holder    = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	ratio     = regexp.MustCompile(`\d+\.\d+ ×`)
	address   = regexp.MustCompile(`\b127\.0\.0\.1:\d+|localhost:\d+`)
	duration  = regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|s)\b|\b\d+m\b`)
	amount    = regexp.MustCompile(`\b\d+\.\d+(USD|ch)\b`)
	number    = regexp.MustCompile(`("[a-z_]*?(_s|_hours|_bytes|_ms|pid|free_mib|parallelism|makespan_over_[a-z_]*)":\s*)-?\d+(\.\d+)?([eE]-?\d+)?`)
	fraction  = regexp.MustCompile(`\b\d\.\d+\b`)
	nearAll   = regexp.MustCompile(`\b(99\.\d+|100)USD\b`)              // what is left of an allocation
	sampled   = regexp.MustCompile(`( on 1 cpu\(s\)|("cpus": )[01]\b)`) // of a run that may be over before a worker was counted
	percent   = regexp.MustCompile(`\b\d+ %`)
	blanks    = regexp.MustCompile(` {2,}`)
	personal  = regexp.MustCompile(`ann\d+`)
	shortTime = 10 * time.Minute
)

// rename gives names of its own to ids, times, tags and the like, in the order in which they appear. Short times, and
// what is charged for them, are left out; those of twins are long and dear.
func (n *names) rename(text string) string {
	text = tag.ReplaceAllStringFunc(text, func(s string) string { return n.name("tag", s) })
	text = runDir.ReplaceAllStringFunc(text, func(s string) string { return n.name("dir", s) })
	text = digest.ReplaceAllStringFunc(text, func(s string) string { return n.name("digest", s) })
	text = personal.ReplaceAllString(text, "TOKEN")
	text = forkStart.ReplaceAllString(text, "PROCESS") // before ids, which the second number may resemble
	text = ids.ReplaceAllStringFunc(text, func(s string) string { return n.name(storetest.Noun(s), s) })
	text = instant.ReplaceAllString(text, "TIME")
	text = clock.ReplaceAllString(text, "TIME")
	text = holder.ReplaceAllString(text, "HOLDER")
	text = ratio.ReplaceAllString(text, "N ×")
	text = address.ReplaceAllString(text, "ADDRESS")
	text = number.ReplaceAllStringFunc(text, func(s string) string {
		key, value, _ := strings.Cut(s, ":")
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && (v < shortTime.Seconds() || strings.Contains(key, "free_mib")) {
			return key + ": N"
		}
		return s
	})
	text = duration.ReplaceAllStringFunc(text, func(s string) string {
		if d, err := time.ParseDuration(s); err == nil && d < shortTime {
			return "SHORT"
		}
		return s
	})
	text = amount.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "0.") {
			return "LITTLE"
		}
		return s
	})
	text = tiny.ReplaceAllString(text, "F")
	text = early.ReplaceAllString(text, "$1 STATE")
	text = nearAll.ReplaceAllString(text, "NEARLY ALL")
	text = sampled.ReplaceAllString(text, "${2}")
	text = percent.ReplaceAllString(text, "N %")
	text = fraction.ReplaceAllString(text, "F")
	text = forkJob.ReplaceAllString(text, "PROCESS")
	return blanks.ReplaceAllString(text, " ")
}
