package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/central"
	"github.com/corral-pilot/corral/internal/service/server"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
)

func contacts(t testing.TB, patterns ...string) access.Contacts {
	t.Helper()
	c, err := access.ParseContacts(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goes makes the throng's server connect to sites with the real transport, limited to the allowed contacts and the
// rate.
func (g *throng) goes(t *testing.T, rate access.Rate, patterns ...string) {
	t.Helper()
	allowed := contacts(t, patterns...)
	lg, home := slog.New(slog.NewTextHandler(g.log, nil)), t.TempDir()
	backends := g.far.backends()
	backends.Transports["ssh"] = func(_, contact string) (gridsite.Conn, error) {
		return ssh.New(contact, ssh.Options{Home: home, Log: lg, Dial: central.Dial(allowed)})
	}
	config := g.config
	config.Reach = siteaccess.New(backends, "0123 me@here")
	t.Cleanup(config.Reach.Close)
	config.Bounds.Visits = server.VisitBounds{Allowed: allowed, Rate: rate}
	g.door = central.NewDoor(server.New(lg, g.db, config), g.db, lg, access.Limits{})
}

// answering listens on this machine and calls with for each connection; nil: the listener is closed.
func answering(t *testing.T, with func(net.Conn)) (port string) {
	t.Helper()
	l := must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	if with == nil {
		l.Close()
		return port
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			with(c)
			c.Close()
		}
	}()
	return port
}

// knock requests a site at a port of this machine; the port is removed from the answer.
func (g *throng) knock(t *testing.T, who, host, port string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	body := fmt.Sprintf(`{"name": "far", "contact": "ssh://me@%s:%s", "batch": "fork"}`, host, port)
	rec := g.as(t, who, http.MethodPost, "/v1/sites", body)
	return rec, strings.ReplaceAll(rec.Body.String(), port, "PORT")
}

// A user who lets corrald scan ports of its network gets the same answer, regardless of the services there and of
// whether corrald may connect to them; an administrator gets more, and the log contains it.
func TestOneAnswerForWhatIsNotReached(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	ports := map[string]string{
		"closed":         answering(t, nil),
		"hangs up":       answering(t, func(net.Conn) {}),
		"speaks HTTP":    answering(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }),
		"speaks smtp":    answering(t, func(c net.Conn) { _, _ = io.WriteString(c, "220 mail.example.org ESMTP\r\n") }),
		"looks like ssh": answering(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\nnonsense nonsense nonsense nonsense") }),
	}
	answers := map[string]string{}
	g.goes(t, access.Rate{}, "127.0.0.0/8:*")
	for name, port := range ports {
		rec, text := g.knock(t, "ann", "localhost", port)
		if rec.Code != http.StatusBadGateway {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		answers[text] = name
	}
	if rec, text := g.knock(t, "root", "localhost", ports["closed"]); rec.Code != http.StatusBadGateway || !strings.Contains(text, "connection refused") {
		t.Errorf("an administrator hears %s", text)
	}
	g.goes(t, access.Rate{}, "*:*") // names never resolve to this machine
	_, text := g.knock(t, "ann", "localhost", ports["hangs up"])
	answers[text] = "not allowed"
	if len(answers) != 1 {
		t.Errorf("there are %d answers: %v", len(answers), answers)
	}
	if rec, text := g.knock(t, "root", "localhost", ports["hangs up"]); !strings.Contains(text, "is not allowed (--allow-contacts *:*)") {
		t.Errorf("an administrator hears %d %s", rec.Code, text)
	}
	if log := g.log.String(); !strings.Contains(log, "connection refused") || !strings.Contains(log, "is not allowed") {
		t.Errorf("the log has no reasons: %s", log)
	}
}

// Contacts that the request itself shows to be disallowed are refused with the name of the setting before corrald
// connects anywhere.
func TestContactsThatAreNotAllowed(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.goes(t, access.Rate{}, "*")
	for _, at := range []struct{ host, port string }{{"127.0.0.1", "22"}, {"169.254.169.254", "22"}, {"0.0.0.0", "22"}, {"login.example.org", "80"}} {
		rec, text := g.knock(t, "ann", at.host, at.port)
		var p api.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != http.StatusForbidden || p.Place != "contact" || !strings.Contains(text, "connects only to * (--allow-contacts)") {
			t.Errorf("%v: %d %s", at, rec.Code, text)
		}
		login := g.as(t, "ann", http.MethodPost, "/v1/logins", fmt.Sprintf(`{"contact": "ssh://me@%s:%s"}`, at.host, at.port))
		if login.Code != http.StatusForbidden {
			t.Errorf("a login at %v: %d %s", at, login.Code, login.Body)
		}
	}
}

// Each owner has a separate rate of visits.
func TestVisitsHaveARate(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	port := answering(t, nil)
	g.goes(t, access.Rate{PerSecond: 1.0 / 6000, Burst: 2}, "127.0.0.0/8:*")
	for i, want := range []int{http.StatusBadGateway, http.StatusBadGateway, http.StatusTooManyRequests} {
		rec, text := g.knock(t, "ann", "localhost", port)
		if rec.Code != want {
			t.Errorf("visit %d: %d %s", i, rec.Code, text)
		}
		if want == http.StatusTooManyRequests {
			if s, err := strconv.Atoi(rec.Header().Get("Retry-After")); err != nil || s < 1 || !strings.Contains(text, "ann has corrald go to sites more often than 0.01 times a minute (--visits)") {
				t.Errorf("the refusal: %v %s", rec.Header(), text)
			}
		}
	}
	if rec, _ := g.knock(t, "bob", "localhost", port); rec.Code != http.StatusBadGateway {
		t.Errorf("bob: %d %s", rec.Code, rec.Body)
	}
}
