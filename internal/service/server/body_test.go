package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/service/server"
)

// listen serves the fixture's store like corrald, on its own socket, with this grace period for bodies. stop returns
// the log.
func (f *fixture) listen(t *testing.T, grace time.Duration) (socket string, stop func() string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l := must(net.Listen("unix", socket))(t)
	var log bytes.Buffer
	config := f.config
	config.Bounds.Pace, config.Runs = rest.Pace{Grace: grace}, newRuns(t, f.db, f.bench)
	srv := server.New(slog.New(slog.NewTextHandler(&log, nil)), f.db, config)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	served := later(func() error { return srv.Serve(ctx, l) })
	return socket, func() string {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
		return log.String()
	}
}

// say connects and sends a request, possibly incomplete.
func say(t *testing.T, socket, request string) *net.UnixConn {
	t.Helper()
	conn := must(net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"}))(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	if _, err := io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return conn
}

// hear reads an answer and waits until the server closes the connection.
func hear(t *testing.T, conn net.Conn) (status int, p api.Problem) {
	t.Helper()
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := must(io.ReadAll(resp.Body))(t)
	if resp.StatusCode >= 400 {
		if err := json.Unmarshal(body, &p); err != nil {
			t.Errorf("answered %s", body)
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("after the answer: %v, want the connection's end", err)
	}
	return resp.StatusCode, p
}

// begun returns a request whose body is incomplete.
func begun(line, header string) string {
	return line + " HTTP/1.1\nHost: corrald\nContent-Type: application/json\n" + header + "\n\n" + `{"site": `
}

var cutOff = regexp.MustCompile(`^body: it was cut off after \d+( of 200)? bytes \(.+\); nothing was done: send the request again$`)

func TestBodyThatIsCutOff(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	socket, stop := f.listen(t, 5*time.Minute)
	for name, request := range map[string]string{
		"length":  begun("POST /v1/glideins", "Content-Length: 200"),
		"chunked": begun("POST /v1/glideins", "Transfer-Encoding: chunked\n\n8"),
		"junk":    begun("POST /v1/glideins", "Transfer-Encoding: chunked\n\nx"),
		"remove":  begun("DELETE /v1/sites/local", "Content-Length: 200"),
		"login":   begun("POST /v1/logins", "Content-Length: 200"),
	} {
		conn := say(t, socket, request)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		status, p := hear(t, conn)
		if status != http.StatusBadRequest || p.Kind != corral.Invalid || !cutOff.MatchString(p.Detail) {
			t.Errorf("%s: %d %+v, want 400 at body, cut off", name, status, p)
		}
	}
	if list := must(f.Glideins(t.Context(), api.Filter{All: true}))(t); len(list) != 0 {
		t.Errorf("glideins %v were created", list)
	}
	if site := must(f.Site(t.Context(), "local"))(t); site.State != corral.SiteReady {
		t.Errorf("the site is %s", site.State)
	}
	if log := stop(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
		t.Errorf("log: %s", log)
	}
}

// TestBodyThatDoesNotCome: a connection whose body does not arrive is closed, for every kind of request.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	socket, stop := f.listen(t, 50*time.Millisecond)
	for line, want := range map[string]int{
		"POST /v1/glideins":      http.StatusRequestTimeout,
		"DELETE /v1/sites/local": http.StatusRequestTimeout,
		"POST /v1/nothing":       http.StatusNotFound,
		"GET /v1/sites":          http.StatusOK,
	} {
		status, p := hear(t, say(t, socket, begun(line, "Content-Length: 200")))
		if status != want || want == http.StatusRequestTimeout && (p.Kind != corral.Unavailable || p.Place != "body" ||
			p.Detail != "body: only 9 of 200 bytes arrived in time: after 50ms at least 128 KiB have to arrive each second; "+
				"nothing was done: send the request again") {
			t.Errorf("%s: %d %+v, want %d", line, status, p, want)
		}
	}
	if site := must(f.Site(t.Context(), "local"))(t); site.State != corral.SiteReady {
		t.Errorf("the site is %s", site.State)
	}
	if log := stop(); strings.Contains(log, "level=ERROR") {
		t.Errorf("log: %s", log)
	}
}

// TestTimeForBodiesIsNotForAnswers: a request whose body has arrived may take any time to be answered.
func TestTimeForBodiesIsNotForAnswers(t *testing.T) {
	t.Parallel()
	f := start(t)
	socket, stop := f.listen(t, 50*time.Millisecond)
	defer stop()
	f.meanwhile = func() { // a body that begins later is abandoned before the request is answered
		status, _ := hear(t, say(t, socket, begun("POST /v1/glideins", "Content-Length: 200")))
		if status != http.StatusRequestTimeout {
			t.Errorf("a body that does not come: %d, want 408", status)
		}
	}
	body := `{"name": "a", "contact": "local:", "batch": "fork"}`
	const head = "POST /v1/sites HTTP/1.1\nHost: corrald\nConnection: close\nContent-Type: application/json\n"
	conn := say(t, socket, fmt.Sprintf(head+"Content-Length: %d\n\n%s", len(body), body))
	if status, p := hear(t, conn); status != http.StatusCreated {
		t.Errorf("the request: %d %+v, want 201", status, p)
	}
}

// TestHeadOfARequestIsBounded: the size of the part before the body is limited.
func TestHeadOfARequestIsBounded(t *testing.T) {
	t.Parallel()
	f := start(t)
	socket, stop := f.listen(t, 0)
	defer stop()
	conn := say(t, socket, "GET /healthz HTTP/1.1\nHost: corrald\nX-Long: "+strings.Repeat("x", 80<<10)+"\n\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s, want 431", resp.Status)
	}
}
