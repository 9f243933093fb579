package progress_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

func glidein(state corral.GlideinState, reason string, workers int, attempts ...corral.JobState) corral.Glidein {
	g := corral.Glidein{ID: 3, State: state, Reason: reason,
		Shape:      corral.Shape{Hosts: 2, CPUs: 1},
		WorkersNow: workers, CPUsNow: workers, CreatedAt: began}
	for i, s := range attempts {
		g.Attempts = append(g.Attempts, corral.Job{Number: i + 1, State: s})
	}
	return g
}

// corraldWith returns a client for a corrald that answers with the glideins one after the other, then always with the
// last.
func corraldWith(t *testing.T, glideins ...corral.Glidein) *api.Client {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(glideins[min(asked, len(glideins)-1)])
		asked++
	}))
	t.Cleanup(s.Close)
	cl, err := api.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func TestGlideinUntilItsWorkersAreThere(t *testing.T) {
	t.Parallel()
	cl := corraldWith(t, glidein(corral.GlideinWaiting, "site not ready", 0), glidein(corral.GlideinActive, "", 2, corral.JobRunning))
	got, err := progress.Glidein(t.Context(), cl, 3, progress.Condition{Until: api.UntilWorkers}, progress.NewGlideinView(&bytes.Buffer{}, progress.Look{}))
	if err != nil || got.WorkersNow != 2 {
		t.Errorf("Glidein = %+v, %v, want one with its workers", got, err)
	}
}

func TestGlideinWaitEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		glidein corral.Glidein
		wait    progress.Condition
		kind    corral.Kind
		says    string
	}{
		{"over", glidein(corral.GlideinFailed, "attempt 1 failed", 0), progress.Condition{Until: "workers"}, corral.Failed, "glidein 3 is FAILED (attempt 1 failed) and will not get workers any more"},
		{"timeout", glidein(corral.GlideinWaiting, "site not ready", 0), progress.Condition{Until: "workers", Timeout: 20 * time.Millisecond}, corral.Timeout, "glidein 3 is WAITING (site not ready), without all of its workers, after 20ms"},
		{"not a state", glidein(corral.GlideinWaiting, "", 0), progress.Condition{Until: "coffee"}, corral.Invalid, `wait: "coffee" must be one of`},
	} {
		var out bytes.Buffer
		_, err := progress.Glidein(t.Context(), corraldWith(t, tt.glidein), 3, tt.wait, progress.NewGlideinView(&out, progress.Look{}))
		if corral.KindOf(err) != tt.kind || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s: %s", tt.name, err, tt.kind, tt.says)
		}
		if tt.kind == corral.Timeout && out.String() != "glidein 3 WAITING (site not ready): 0 of 2 workers\n" {
			t.Errorf("%s: shown was %q", tt.name, out.String())
		}
	}
}

func TestGlideinView(t *testing.T) {
	t.Parallel()
	seen := []corral.Glidein{
		glidein(corral.GlideinWaiting, "site not ready", 0), glidein(corral.GlideinWaiting, "site not ready", 0),
		glidein(corral.GlideinActive, "attempt 1 QUEUED", 0, corral.JobQueued), glidein(corral.GlideinActive, "attempt 1 RUNNING", 1, corral.JobRunning),
	}
	var plain bytes.Buffer
	s := &screen{}
	s.Write([]byte("$ corral glidein wait 3\n"))
	lines, live := progress.NewGlideinView(&plain, progress.Look{}), progress.NewGlideinView(s, progress.Look{Width: func() int { return 60 }})
	for i, g := range seen {
		lines.Show(g, after(float64(i)))
		live.Show(g, after(float64(i)))
	}
	want := "glidein 3 WAITING (site not ready): 0 of 2 workers\nglidein 3 QUEUED: 0 of 2 workers\nglidein 3 RUNNING: 1 of 2 workers\n"
	if diff := cmp.Diff(want, plain.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if want := "$ corral glidein wait 3\nglidein 3 RUNNING: 1 of 2 workers  3s\n"; s.String() != want {
		t.Errorf("the screen shows\n%s\nwant\n%s", s, want)
	}
	live.Close()
	if want := "$ corral glidein wait 3\n"; s.String() != want {
		t.Errorf("after the view the screen shows\n%s\nwant\n%s", s, want)
	}
}
