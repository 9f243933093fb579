package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// A request about a missing object is answered before most of its body has arrived: the body is neither awaited nor
// stored. If the members are in another order, or the cluster exists, the body is awaited.
func TestBodiesForNothingAreNotRead(t *testing.T) {
	t.Parallel()
	f := start(t)
	socket, stop := f.listen(t, 0)
	defer stop()
	const length = 7 << 20 // the smallest limit of the routes is 8 MiB
	for _, tt := range []struct{ path, begin, says string }{
		{"/v1/runs", `{"cluster": "nowhere", "workflow": {`, "no cluster nowhere"},
		{"/v1/runs/dry-run", `{"source_dir": "", "cluster": "nowhere", "workflow": {`, "no cluster nowhere"},
		{"/v1/plans", `{"cluster": "nowhere", "workflow": {`, "no cluster nowhere"},
		{"/v1/ensembles", `{"name": "x", "cluster": "nowhere", "workflows": [`, "no cluster nowhere"},
		{"/v1/runs/77/tasks", `{"task": {`, "no run 77"},
	} {
		head := fmt.Sprintf("POST %s HTTP/1.1\nHost: corrald\nContent-Type: application/json\nContent-Length: %d\n\n", tt.path, length)
		conn := say(t, socket, head)
		if _, err := io.WriteString(conn, tt.begin+strings.Repeat(" ", 70<<10)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text := must(io.ReadAll(io.LimitReader(resp.Body, 4<<10)))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(text), tt.says) {
			t.Errorf("%s: %d %s", tt.path, resp.StatusCode, text)
		}
	}
	conn := say(t, socket, "POST /v1/runs HTTP/1.1\nHost: corrald\nContent-Type: application/json\nContent-Length: 300000\n\n")
	body := `{"workflow": {}, "junk": "` + strings.Repeat("x", 100<<10) + `", "cluster": "nowhere"`
	if _, err := io.WriteString(conn, body+strings.Repeat(" ", 300_000-len(body)-1)+"}"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest { // the whole body was read: junk is not a field
		t.Errorf("members in another order: %d, want %s", resp.StatusCode, corral.Invalid)
	}
}
