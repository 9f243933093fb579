package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
)

var update = flag.Bool("update", false, "rewrite docs/api.md and the answers in docs/api-examples.md")

const examplesFile = "../../../docs/api-examples.md"

var (
	example  = regexp.MustCompile("(?s)```http\n(.*?)\n\n(HTTP .*?)```\n")
	instant  = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`)
	runDir   = regexp.MustCompile(`/[^" ]*/runs/two-\w+-\w+`)
	secret   = regexp.MustCompile(`"(key|signature)": "(ed25519:)?[A-Za-z0-9+/=]+"`)
	archived = regexp.MustCompile(`"digest": "sha256:[0-9a-f]{64}",(\s+)"size_bytes": \d+`)
	session  = regexp.MustCompile(`"session": "\w+\.(\d+)"`)
	took     = regexp.MustCompile(`"makespan_s": [0-9.e-]+,(\s+"cumulative_task_time_s")`) // of a run; a plan's is exact
	varying  = regexp.MustCompile(`"(wait_for_workers_s|wait_s|max_s|used|billed|used_core_hours|billed_core_hours|allocated_core_hours|idle_core_hours|lost_core_hours)": [0-9.e-]+`)
)

// TestExamples replays docs/api-examples.md in order. The function between simulates the engine and the cluster
// between two examples.
func TestExamples(t *testing.T) {
	f := start(t)
	f.login = asks
	doc := string(must(os.ReadFile(examplesFile))(t))
	got := example.ReplaceAllStringFunc(doc, func(block string) string {
		request := example.FindStringSubmatch(block)[1]
		line, _, _ := strings.Cut(request, "\n")
		if meanwhile := between[line]; meanwhile != nil {
			meanwhile(t, f)
		}
		return "```http\n" + request + "\n\n" + f.replay(t, line, request) + "```\n"
	})
	if *update {
		if err := os.WriteFile(examplesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(doc, got); diff != "" {
		t.Errorf("docs/api-examples.md (-document +answers); go test ./internal/service/server -run Examples -update rewrites it:\n%s", diff)
	}
}

// replay sends an example's request and returns its answer in the document's form.
func (f *fixture) replay(t *testing.T, line, request string) string {
	t.Helper()
	method, target, _ := strings.Cut(line, " ")
	rest := strings.TrimPrefix(request, line)
	var key string
	if header, body, ok := strings.Cut(strings.TrimPrefix(rest, "\nIdempotency-Key: "), "\n"); ok && strings.HasPrefix(rest, "\nIdem") {
		key, rest = header, body
	}
	rest = strings.ReplaceAll(rest, "/srv/packages", f.shelf.dir)
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(strings.TrimSpace(rest)))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	rec := httptest.NewRecorder()
	checked(t, f.server).ServeHTTP(rec, r)
	return fmt.Sprintf("HTTP %d\n%s\n", rec.Code, f.presentable(rec.Body.Bytes()))
}

// presentable replaces the values that differ between replays.
func (f *fixture) presentable(body []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, bytes.TrimSpace(body), "", "  ") != nil {
		return string(bytes.TrimSpace(body))
	}
	s := instant.ReplaceAllString(indented.String(), `"2026-01-02T03:04:05Z"`)
	s = strings.ReplaceAll(s, f.shelf.dir, "/srv/packages")
	s = archived.ReplaceAllString(s, `"digest": "sha256:b1a5…",$1"size_bytes": 315`) // Go's compressor may change
	s = secret.ReplaceAllString(s, `"$1": "${2}aGF5…"`)
	s = session.ReplaceAllString(s, `"session": "QK3V….$1"`)
	s = took.ReplaceAllString(s, `"makespan_s": 1.5,$1`)
	s = varying.ReplaceAllString(s, `"$1": 1.5`)
	return runDir.ReplaceAllString(s, "/home/ada/.local/share/corral/runs/two-20260102T030405-k3ab2c")
}

// between holds the events before an example.
var between = map[string]func(*testing.T, *fixture){
	"GET /v1/sites/local?wait=READY,FAILED&timeout_s=30": stage,
	"GET /v1/sites/local/orphans":                        lose,
	"GET /v1/glideins/1?wait=workers&timeout_s=60":       startWorkers,
	"POST /v1/runs/1/cancel":                             func(_ *testing.T, f *fixture) { <-f.bench.submitted },
	"POST /v1/runs/1/resume":                             waitForRun,
	"GET /v1/runs/1?wait=SUCCEEDED,FAILED&timeout_s=60":  failTask,
	"DELETE /v1/runs/1?purge=true":                       waitForRun,
	"DELETE /v1/glideins/1?now=true":                     expire,
}

// stage simulates the engine's work on a new site.
func stage(t *testing.T, f *fixture) {
	f.write(t, func(tx *store.Tx) error {
		job, err := tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: 1, Tag: "corral-setup-7xw"})
		if err != nil {
			return err
		}
		if _, err := tx.MoveSite(1, corral.SiteStage, "the site is new"); err != nil {
			return err
		}
		for _, e := range []corral.JobEvent{{Move: corral.JobSubmit}, {Move: corral.JobEnd, Outcome: corral.OutcomeDone}} {
			if _, err := tx.MoveJob(job.ID, e); err != nil {
				return err
			}
		}
		_, err = tx.MoveSite(1, corral.SiteStaged, "")
		return err
	})
}

// lose creates a job that an earlier corrald left.
func lose(t *testing.T, f *fixture) {
	const alive = "corral-pilot-9p2xw4a7bc3d"
	f.jobs[alive] = gridsite.JobStatus{Tag: alive, ID: "4711", Phase: gridsite.Running, StartedAt: time.Now()}
	f.jobs["corral-probe-2bq7wd5ezk4m"] = gridsite.JobStatus{}
	f.files[alive+"/"+jobfiles.File] = string(must(jobfiles.Order{Tag: alive, Root: "/srv/sites/local", Pilot: &jobfiles.PilotOrder{
		Token: "secret",
		Shape: corral.Shape{Hosts: 2, CPUs: 4, MemoryMiB: 8192, Walltime: corral.Seconds(2 * time.Hour)}}}.Encode())(t))
}

func startWorkers(t *testing.T, f *fixture) {
	g := must(f.Glidein(t.Context(), 1))(t)
	job := f.attempt(t, g, "corral-pilot-3kq")
	f.files[job.Tag+"/stderr"] = "joined\n"
	now := time.Now().UTC()
	for host := range 2 {
		f.crowd.register(corral.Worker{ID: fmt.Sprintf("%s/%d", job.Tag, host), Cluster: 1, Glidein: 1, Attempt: job.ID,
			Host: "node7", PID: 4711 + host, CPUs: 1, CPUsFree: 1, MemoryMiB: g.MemoryMiB,
			MemoryFree: g.MemoryMiB, DiskMiB: 40960, DiskFree: 40960, Connected: true,
			RegisteredAt: now, SeenAt: now, EndsAt: now})
	}
}

func waitForRun(t *testing.T, f *fixture) { must(f.WaitRun(t.Context(), 1, time.Minute))(t) }

// failTask makes the task fail that was submitted after the run was resumed.
func failTask(t *testing.T, f *fixture) {
	f.bench.end(t, <-f.bench.submitted, execution.Failed)
	waitForRun(t, f)
}

// expire ends the glidein's attempt.
func expire(t *testing.T, f *fixture) {
	f.write(t, func(tx *store.Tx) error {
		job, err := tx.JobTagged("corral-pilot-3kq")
		if err != nil {
			return err
		}
		_, err = tx.MoveJob(job.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired})
		return err
	})
}
