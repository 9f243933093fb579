package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/store"
)

// streaming is a set of pools, one of which has a stream.
type streaming struct {
	far
	cluster corral.ClusterID
	stream  *stream.Stream
}

func (s streaming) Stream(id corral.ClusterID) (*stream.Stream, error) {
	if id != s.cluster {
		return nil, corral.Errorf(corral.NotFound, "no cluster %d", id)
	}
	return s.stream, nil
}

func (s streaming) Streamed(id corral.ClusterID) *stream.Stream {
	if id != s.cluster {
		return nil
	}
	return s.stream
}

// streamed creates a pool with a stream and returns its id and the token of its worker jobs.
func (w *world) streamed() (corral.ClusterID, string) {
	w.t.Helper()
	pool := w.pool(corral.Cluster{Name: "mine", Collector: "127.0.0.1:20001"})
	dir := w.t.TempDir()
	const token = "the token of worker jobs"
	note, err := json.Marshal(map[string]any{"name": "S", "token": token})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "note.json"), note, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := stream.Open(slog.New(slog.DiscardHandler), stream.Config{
		Cluster: pool.ID, Dir: dir, Glideins: func() []corral.Worker { return nil }, Dispatch: StreamTerms(w.clusters),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	w.clusters.UsePools(streaming{cluster: pool.ID, stream: s})
	return pool.ID, token
}

// Worker jobs are admitted with the token of their cluster's stream, on a live glidein of that cluster.
func TestAdmitWorkerJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool, token := w.streamed()
	later := time.Now().Add(time.Hour)
	good := w.attempt(w.site("good").ID, pool, "good", later)
	w.attempt(w.site("other").ID, 1, "elsewhere", later)
	over := w.attempt(w.site("over").ID, pool, "over", later)
	w.write(func(tx *store.Tx) error {
		_, err := tx.MoveJob(over.ID, corral.JobEvent{Move: corral.JobEnd, At: time.Now(), Outcome: corral.OutcomeRemoved})
		return err
	})
	tag := stream.Tag(pool)
	for name, tt := range map[string]struct {
		tag, token, holder string
		role               wire.Role
		worker             string // the part after the holder
		cpus               int
		kind               corral.Kind
		says               string
	}{
		"a worker":                  {tag, token, "good/0", wire.RoleWorker, "+3", 2, "", ""},
		"its courier":               {tag, token, "good/0", wire.RoleCourier, "+3", 2, "", ""},
		"a wrong token":             {tag, "guessed", "good/0", wire.RoleWorker, "+3", 2, corral.Unauthenticated, "not that of worker jobs"},
		"a pilot":                   {tag, token, "good/0", wire.RolePilot, "", 0, corral.Forbidden, "is not a pilot"},
		"another cluster":           {stream.Tag(pool + 1), token, "good/0", wire.RoleWorker, "+3", 2, corral.Unauthenticated, "is not known here"},
		"no such glidein":           {tag, token, "none/0", wire.RoleWorker, "+3", 2, corral.Forbidden, "glidein that is not known"},
		"another cluster's glidein": {tag, token, "elsewhere/0", wire.RoleWorker, "+3", 2, corral.Forbidden, "glidein that is not known"},
		"a glidein that is over":    {tag, token, "over/0", wire.RoleWorker, "+3", 2, corral.Forbidden, "has ended as removed"},
		"more than the host has":    {tag, token, "good/0", wire.RoleWorker, "+3", 3, corral.Forbidden, "has 2 CPUs on a host"},
		"no such host":              {tag, token, "good/1", wire.RoleWorker, "+3", 2, corral.Forbidden, "is not a worker job on a worker of good"},
		"no number":                 {tag, token, "good/0", wire.RoleWorker, "+x", 2, corral.Forbidden, "is not a worker job on a worker of good"},
	} {
		sum := sha256.Sum256([]byte(tt.token))
		in, err := w.clusters.Admit(t.Context(), port.Credentials{
			Role: tt.role, Tag: tt.tag, TokenDigest: hex.EncodeToString(sum[:]), Holder: tt.holder,
			Worker: tt.holder + tt.worker, Shape: corral.Resources{CPUs: tt.cpus, MemoryMiB: 1},
		})
		if corral.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v (kind %q), want kind %q saying %q", name, err, corral.KindOf(err), tt.kind, tt.says)
		}
		if err == nil && (in.Attempt != good.ID || in.Cluster != pool || in.Dispatcher == nil || in.Links == nil) {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

// Through a relay, worker jobs can reach the worker port and nothing else.
func TestWorkerJobsComeThroughARelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool, token := w.streamed()
	site := w.site("hpc")
	for name, tt := range map[string]struct {
		target relay.Target
		tag    string
		token  string
		kind   corral.Kind
	}{
		"a worker":        {relay.Workers, stream.Tag(pool), token, ""},
		"another token":   {relay.Workers, stream.Tag(pool), "guessed", corral.Unauthenticated},
		"another cluster": {relay.Workers, stream.Tag(pool + 1), token, corral.Unauthenticated},
		"to the pool":     {relay.Pool, stream.Tag(pool), token, corral.Forbidden},
	} {
		_, err := w.clusters.AdmitThrough(t.Context(), site.ID, relay.NewRequest(tt.target, tt.tag, tt.token))
		if corral.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want %q", name, err, tt.kind)
		}
	}
}

// Without pools, or without streams, worker jobs are not admitted.
func TestWithoutStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.clusters.Admit(t.Context(), port.Credentials{Role: wire.RoleWorker, Tag: stream.Tag(1), Holder: "good/0"})
	if corral.KindOf(err) != corral.Unauthenticated {
		t.Errorf("a worker: %v", err)
	}
	_, err = w.clusters.AdmitThrough(t.Context(), 1, relay.NewRequest(relay.Workers, stream.Tag(1), "t"))
	if corral.KindOf(err) != corral.Unauthenticated {
		t.Errorf("through a relay: %v", err)
	}
}

// A pool's worker shows the activity of its worker jobs: to HTCondor, a slot with an idle worker job is as busy as
// any other.
func TestWorkersShowWhatIsStreamedThere(t *testing.T) {
	t.Parallel()
	workers := []corral.Worker{
		{ID: "a/0", CPUs: 4, CPUsFree: 1, MemoryMiB: 400, MemoryFree: 100, RunningTasks: 2, Connected: true},
		{ID: "a/1", CPUs: 4, CPUsFree: 4, Connected: true},
	}
	regard(workers, []corral.Worker{
		{ID: "a/0+1", CPUs: 2, CPUsFree: 1, MemoryMiB: 200, MemoryFree: 150, RunningTasks: 1, Connected: true},
		{ID: "a/1+2", CPUs: 4, CPUsFree: 4, Connected: true}, // not yet known to the collector
		{ID: "a/1+3", CPUs: 4, CPUsFree: 4},
		{ID: "b/0+4", CPUs: 4, CPUsFree: 4, Connected: true},
	})
	want := []corral.Worker{
		{ID: "a/0", CPUs: 4, CPUsFree: 2, MemoryMiB: 400, MemoryFree: 250, RunningTasks: 2, Connected: true},
		{ID: "a/1", CPUs: 4, CPUsFree: 4, Connected: true},
	}
	if diff := cmp.Diff(want, workers); diff != "" {
		t.Error(diff)
	}
}
