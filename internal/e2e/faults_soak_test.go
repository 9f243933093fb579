//go:build soak

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/fault"
)

// Whatever goes wrong, once, with any action that leaves corrald: what a user asked for comes to the same end as
// without it. For each point one kind of fault is drawn, or with FAULTS=all each kind is played; SEED repeats a draw.
func TestFaultsEmbedded(t *testing.T) {
	t.Parallel()
	playFaults(t, life{site: "local", cluster: "default", of: func(t testing.TB) *user { return newUser(t) }})
}

// A life is what a user asks of one corrald, from its start to its end.
type life struct {
	of            func(testing.TB) *user
	site, cluster string
	flags         []string       // of the glidein
	begin         func(*living)  // after corrald's start: what the site and the cluster need
	only          *regexp.Regexp // points, where others have the rest; nil: all
}

// A living is a life that is lived.
type living struct {
	*user
	life
	met []string // what commands said that had to be repeated
}

// playFaults lives the life once without a fault, to see which points it passes and how often, and then once for each
// of them and each kind of fault.
func playFaults(t *testing.T, of life) {
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("SEED=%d repeats these faults", seed)
	passed := map[fault.Point]int{}
	undisturbed := living{user: of.of(t), life: of}
	undisturbed.live("trace", func(log string) {
		for _, m := range passedPoint.FindAllStringSubmatch(log, -1) {
			if of.only == nil || of.only.MatchString(m[1]) {
				passed[fault.Point(m[1])]++
			}
		}
	})
	for number, point := range slices.Sorted(maps.Keys(passed)) {
		draw := rand.New(rand.NewPCG(seed, uint64(number)))
		kinds := slices.Clone(fault.Kinds)
		if point == fault.StoreWrite { // what is committed is known to be
			kinds = slices.DeleteFunc(kinds, func(k fault.Kind) bool { return k == fault.Lost })
		}
		if os.Getenv("FAULTS") != "all" {
			kinds = []fault.Kind{kinds[draw.IntN(len(kinds))]}
		}
		for _, kind := range kinds {
			at := 1 + draw.IntN(max(1, passed[point]/2)) // polls are fewer in a life that is faster
			t.Run(fmt.Sprintf("%s=%s@%d", point, kind, at), func(t *testing.T) {
				t.Parallel()
				l := living{user: of.of(t), life: of}
				began := time.Now()
				happened := false
				l.live(fmt.Sprintf("%s=%s@%d", point, kind, at), func(log string) {
					happened = happened || strings.Contains(log, fault.Happens)
				})
				if !happened {
					t.Errorf("the fault has not happened")
				}
				t.Logf("| %s | %s | %d | converged in %.1f s | %s |", point, kind, at, time.Since(began).Seconds(), strings.Join(l.met, "; "))
			})
		}
	}
}

// passedPoint is a line of corrald's log about an action.
var passedPoint = regexp.MustCompile(`msg="` + fault.Passed + `" point=(\S+)`)

// live asks for all, with the faults, and for whatever failed once more, until it is done.
func (l *living) live(faults string, logged func(log string)) {
	l.t.Helper()
	plain := l.env
	l.env = append(slices.Clone(plain), "CORRALD_FAULTS="+faults)
	first := l.corral("up")
	l.env = plain
	if first.code != 0 {
		l.insist("up")
	}
	if l.begin != nil {
		l.begin(l)
	}
	marks := filepath.Join(l.dir, "open", "marks")
	if err := os.MkdirAll(marks, 0o777); err != nil {
		l.t.Fatal(err)
	}
	_ = os.Chmod(marks, 0o777) // for tasks of another user
	tasks := steps(4, 10*time.Millisecond)
	for i := range tasks {
		tasks[i].script += fmt.Sprintf("; echo >>%s/%s", marks, tasks[i].id)
	}
	file := l.workflow("life", tasks...)

	asked := []string{"glidein", "create", "--site", l.life.site, "--cluster", l.life.cluster, "--cpus", "1", "--resubmit", "2", "--key", "g", "-q"}
	g := l.insist(append(asked, l.flags...)...)
	r := l.insist("run", file, "--cluster", l.life.cluster, "--key", "r", "--detach", "-q")
	l.insist("runs", "wait", r, "-q")
	l.insist("site", "probe", l.life.site)
	l.insist("site", "orphans", l.life.site)
	l.insist("glidein", "remove", g, "--wait", "-q")
	l.check(r, g, marks)
	log, _ := os.ReadFile(l.dir + "/state/corral/corrald.log")
	logged(string(log))
	for a := l.corral("down"); a.code != 0; a = l.corral("down") { // which takes the log with it
		l.repeat([]string{"down"}, a)
	}
	for _, f := range files(l.t, l.dir) {
		if top, _, _ := strings.Cut(f, "/"); strings.Contains(f, "/") && top != "data" && top != "open" {
			l.t.Errorf("left behind: %s", f)
		}
	}
}

// insist repeats a command until it succeeds, as people and scripts do; a corrald that is gone is started again.
func (l *living) insist(args ...string) string {
	l.t.Helper()
	var a answer
	l.until(strings.Join(args, " "), 5*time.Minute, func() bool {
		if a = l.corral(args...); a.code != 0 {
			l.repeat(args, a)
		}
		return a.code == 0
	})
	return strings.TrimSpace(a.stdout)
}

// repeat notes what a command said that failed, and starts corrald if it was killed.
func (l *living) repeat(args []string, a answer) {
	l.t.Helper()
	if len(l.met) > 200 {
		l.t.Fatalf("%v is repeated without end: %s", args, a.stderr)
	}
	lines := strings.Split(strings.TrimSpace(a.stderr), "\n")
	if said := args[0] + ": " + lines[len(lines)-1]; !slices.Contains(l.met, said) {
		l.met = append(l.met, said)
	}
	l.corral("up")
}

// check sees that all was done, and once.
func (l *living) check(run, glidein, marks string) {
	l.t.Helper()
	r := l.run(run)
	if r.State != corral.RunSucceeded || r.Tasks.Done != 4 {
		l.t.Errorf("run %s is %s with %+v: %s", run, r.State, r.Tasks, r.Reason)
	}
	wantOutputs(l.t, r.Dir, 4)
	for _, k := range read[[]api.TaskStatus](l.user, "runs", "tasks", run) {
		b, _ := os.ReadFile(filepath.Join(marks, k.ID))
		if n := strings.Count(string(b), "\n"); n < 1 || n > k.Attempts {
			l.t.Errorf("task %s was executed %d times in %d attempts", k.ID, n, k.Attempts)
		}
	}
	g := l.glidein(glidein)
	if g.State != corral.GlideinDeleted || len(g.Attempts) > 2 {
		l.t.Errorf("glidein %s is %s after %d attempts: %s", glidein, g.State, len(g.Attempts), g.Reason)
	}
	if n := len(read[[]corral.Run](l.user, "runs", "list", "--all")); n != 1 {
		l.t.Errorf("there are %d runs", n)
	}
	if n := len(read[[]corral.Glidein](l.user, "glidein", "list", "--all")); n != 1 {
		l.t.Errorf("there are %d glideins", n)
	}
}
