package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corral-pilot/corral"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// waits is how long a watcher's request waits for its glidein.
const waits = 30 * time.Second

// settles is the time that the watchers, who all connect at once, have before the load begins.
const settles = 10 * time.Second

// figures are the measurements.
type figures struct {
	rows  []row
	polls int64         // answered requests of watchers
	lost  int64         // unanswered requests
	peak  float64       // MiB
	again time.Duration // duration of a restart
}

// A row is one kind of request.
type row struct {
	name string
	vegeta.Metrics
}

// measure runs all kinds of clients for a while. The rates are kept regardless of the answers: a request that is
// delayed by others counts from when it should have been sent.
func (p plan) measure(ctx context.Context, s *stand) (m figures, err error) {
	watching, end := context.WithCancel(ctx)
	var watchers, connected sync.WaitGroup
	hc := s.client(p.watchers)
	connected.Add(p.watchers)
	for i := range p.watchers {
		watchers.Go(func() { s.watch(watching, hc, i, &m, connected.Done) })
	}
	connected.Wait()
	select {
	case <-ctx.Done():
	case <-time.After(settles):
	}
	kinds := []struct {
		name string
		rate int
		make vegeta.Targeter
	}{
		{"asks for a glidein", p.creates, s.create},
		{"reads a page of 100", p.lists, s.list},
		{"reads a glidein", p.reads, s.read},
	}
	m.rows = make([]row, len(kinds))
	var attacks sync.WaitGroup
	for i, k := range kinds {
		m.rows[i].name = k.name
		attacks.Go(func() {
			a := vegeta.NewAttacker(vegeta.TLSConfig(s.tls.Clone()), vegeta.HTTP2(false), vegeta.Timeout(time.Minute))
			for r := range a.Attack(k.make, vegeta.Rate{Freq: k.rate, Per: time.Second}, p.lasts, k.name) {
				m.rows[i].Add(r)
			}
			m.rows[i].Close()
		})
	}
	attacks.Wait()
	m.peak, err = s.peak()
	end()
	watchers.Wait()
	hc.CloseIdleConnections()
	return m, err
}

// watch waits for one glidein repeatedly, and calls connected when it is connected. The first wait has a random length,
// so that the watchers do not all return at the same time.
func (s *stand) watch(ctx context.Context, hc *http.Client, i int, m *figures, connected func()) {
	p := s.people[i%len(s.people)]
	id := p.created[i/len(s.people)%len(p.created)]
	once := sync.OnceFunc(connected)
	defer once()
	trace := httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once() }}
	ctx = httptrace.WithClientTrace(ctx, &trace)
	for wait := rand.Float64() * waits.Seconds(); ctx.Err() == nil; wait = waits.Seconds() {
		url := fmt.Sprintf("%s/v1/glideins/%d?wait=ACTIVE&timeout_s=%.3f", s.url, id, wait)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return // unreachable: the URL is valid
		}
		req.Header = p.header(false)
		resp, err := hc.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		switch {
		case ctx.Err() != nil:
		case err != nil || resp.StatusCode != http.StatusOK:
			atomic.AddInt64(&m.lost, 1)
		default:
			atomic.AddInt64(&m.polls, 1)
		}
	}
}

// any returns one of a person's glideins at random.
func (p person) any() corral.GlideinID { return p.created[rand.IntN(len(p.created))] }

// get sets a request of a person.
func (s *stand) get(t *vegeta.Target, p person, path string) {
	*t = vegeta.Target{Method: http.MethodGet, URL: s.url + path, Header: p.header(false)}
}

func (s *stand) somebody() person { return s.people[rand.IntN(len(s.people))] }

func (s *stand) create(t *vegeta.Target) error {
	p := s.somebody()
	*t = vegeta.Target{
		Method: http.MethodPost, URL: s.url + "/v1/glideins", Body: p.begin, Header: p.header(true),
	}
	return nil
}

func (s *stand) list(t *vegeta.Target) error {
	p := s.somebody()
	s.get(t, p, fmt.Sprintf("/v1/glideins?limit=100&after=%d", p.any()))
	return nil
}

func (s *stand) read(t *vegeta.Target) error {
	p := s.somebody()
	s.get(t, p, fmt.Sprintf("/v1/glideins/%d", p.any()))
	return nil
}

// markdown returns the table.
func (m figures) markdown(p plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d users, %d glideins, %d watchers, %s, over TLS; the generator is on the same machine.\n\n",
		p.users, p.glideins, p.watchers, p.lasts)
	fmt.Fprintln(&b, "| request | a second | median ms | p95 ms | p99 ms | most ms | answered well % |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|")
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, r := range m.rows {
		l := r.Latencies
		fmt.Fprintf(&b, "| %s | %.0f | %.1f | %.1f | %.1f | %.0f | %.2f |\n", r.name, r.Rate,
			ms(l.P50), ms(l.P95), ms(l.P99), ms(l.Max), 100*r.Success)
	}
	fmt.Fprintf(&b, "\nWatchers received %d answers, and %d requests failed. corrald used at most %.0f MiB; "+
		"killed and restarted, it answered after %.2f s.\n", m.polls, m.lost, m.peak, m.again.Seconds())
	return b.String()
}
