package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A program lists its active runs, and asks for one that does not exist. The server here gives corrald's answers.
func ExampleClient_Runs() {
	corrald := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/runs" {
			fmt.Fprint(w, `{"items": [{"id": 7, "workflow": "montage", "state": "RUNNING", "tasks": {"total": 20, "done": 12}}]}`)
			return
		}
		w.Header().Set("Content-Type", api.ProblemMediaType)
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(api.ProblemOf(corral.NoSuch("run", 8)))
	}))
	defer corrald.Close()

	ctx := context.Background()
	client, err := api.New(corrald.URL) // usually unix:PATH, the socket of the user's own corrald
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	runs, err := client.Runs(ctx, api.Filter{States: []string{string(corral.RunRunning)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, run := range runs {
		fmt.Println(run.ID, run.Workflow, run.State, run.Tasks.Done, "of", run.Tasks.Total)
	}
	_, err = client.Run(ctx, 8)
	fmt.Println(corral.KindOf(err) == corral.NotFound, err)
	// Output:
	// 7 montage RUNNING 12 of 20
	// true no run 8
}

// A program requests processors at a site and waits for the workers. The key makes the request safe to repeat after a
// crash: corrald answers with the same glidein.
func ExampleClient_CreateGlidein() {
	ctx := context.Background()
	client, err := api.New("unix:/run/user/1000/corral/corrald.sock")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	request := api.NewGlidein{Site: "hpc",
		Shape: corral.Shape{Hosts: 4, CPUs: 16, Walltime: corral.Seconds(2 * time.Hour)}}
	request.Resubmit = "until=2026-12-01T00:00:00Z"
	glidein, err := client.CreateGlidein(ctx, request, "nightly-2026-11-28")
	if err != nil {
		fmt.Println(err)
		return
	}
	glidein, err = client.WaitGlidein(ctx, glidein.ID, api.UntilWorkers, time.Hour)
	fmt.Println(glidein.CPUsNow, err)
}
