package rest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Data that arrives within the grace period is never too slow, a stall of that length is, and otherwise the average
// decides.
func TestPace(t *testing.T) {
	t.Parallel()
	p := Pace{Grace: 10 * time.Second, Floor: 1000}
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		last    time.Duration
		arrived int64
		want    time.Duration
	}{
		{0, 0, 10 * time.Second},
		{time.Second, 1, 10*time.Second + time.Millisecond},
		{9 * time.Second, 5000, 15 * time.Second},
		{20 * time.Second, 10_000, 20 * time.Second},
		{20 * time.Second, 50_000, 30 * time.Second}, // it was fast and has stalled
	} {
		if got := p.until(begun, begun.Add(tt.last), tt.arrived).Sub(begun); got != tt.want {
			t.Errorf("until %d bytes, the last after %s: %s, want %s", tt.arrived, tt.last, got, tt.want)
		}
	}
}

// A body at the minimum rate is never cut off, regardless of its length: after each piece there is time for the next
// one.
func TestPaceIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Pace{Grace: time.Duration(rapid.IntRange(1, 20).Draw(t, "grace")) * time.Second, Floor: rapid.Int64Range(1, 1<<20).Draw(t, "floor")}
		begun := time.Unix(0, 0)
		now, arrived := begun, int64(0)
		for range rapid.IntRange(1, 50).Draw(t, "pieces") {
			gap := time.Duration(rapid.Int64Range(1, int64(p.Grace)).Draw(t, "gap"))
			now = now.Add(gap)
			if deadline := p.until(begun, now.Add(-gap), arrived); now.After(deadline.Add(time.Microsecond)) {
				t.Fatalf("cut off at %s, after %d bytes at %d a second", now.Sub(begun), arrived, p.Floor)
			}
			arrived += int64(gap.Seconds()*float64(p.Floor)) + 1
		}
	})
}

// drip sends a body in pieces over a connection in the bubble and returns the answered status and its time.
func drip(t *testing.T, pace Pace, pieces int, piece int, every time.Duration) (status int, after time.Duration, read int) {
	t.Helper()
	far, near := net.Pipe()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pace.bound(w, r)
		body, err := io.ReadAll(r.Body)
		read = len(body)
		if err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		select { // an answer may take long
		case <-time.After(time.Hour):
		case <-r.Context().Done():
			t.Error("the context of the request ended")
		}
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(&single{conn: near, closed: make(chan struct{})}) }()
	begin := time.Now()
	var sender sync.WaitGroup
	over := make(chan struct{})
	sender.Go(func() {
		_, _ = io.WriteString(far, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range pieces {
			if _, err := io.WriteString(far, chunk(piece)); err != nil {
				return
			}
			select { // on the bubble's clock
			case <-time.After(every):
			case <-over:
				return
			}
		}
		_, _ = io.WriteString(far, "0\r\n\r\n")
	})
	resp, err := http.ReadResponse(bufio.NewReader(far), nil)
	if err != nil {
		t.Fatal(err)
	}
	after = time.Since(begin)
	resp.Body.Close()
	close(over)
	far.Close()
	sender.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	return resp.StatusCode, after, read
}

func chunk(n int) string {
	const digits = "0123456789abcdef"
	var size []byte
	for v := n; v > 0; v /= 16 {
		size = append([]byte{digits[v%16]}, size...)
	}
	return string(size) + "\r\n" + strings.Repeat("x", n) + "\r\n"
}

// A single is a listener with one connection.
type single struct {
	conn   net.Conn
	closed chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if c := s.conn; c != nil {
		s.conn = nil
		return c, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Close() error   { close(s.closed); return nil }
func (s *single) Addr() net.Addr { return &net.UnixAddr{} }

// Over a connection: a body below the minimum rate ends when it falls behind, a stalled one after the grace period,
// one at the minimum rate arrives, and an answer may take an hour. The clock is the bubble's.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	pace := Pace{Grace: 10 * time.Second, Floor: 1000}
	for _, tt := range []struct {
		name          string
		pieces, piece int
		every         time.Duration
		status        int
		after         time.Duration
	}{
		{"at the floor", 60, 1000, time.Second, 200, time.Hour + time.Minute},
		{"below it", 1000, 300, time.Second, 408, 14*time.Second + 500*time.Millisecond},
		{"it stops", 1, 60_000, time.Hour, 408, 10 * time.Second},
		{"nothing comes", 1, 1, time.Hour, 408, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			status, after, read := drip(t, pace, tt.pieces, tt.piece, tt.every)
			if status != tt.status || after.Round(time.Millisecond) != tt.after {
				t.Errorf("%s: %d after %s with %d bytes, want %d after %s", tt.name, status, after, read, tt.status, tt.after)
			}
		})
	}
}

// A body is read completely, regardless of the pieces in which it arrives and the length that the request claims.
func TestFill(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "body")
		length := rapid.SampledFrom([]int64{-1, int64(len(want))}).Draw(t, "length")
		most := rapid.Int64Range(0, 6000).Draw(t, "most")
		from := bytes.NewReader(want)
		got, err := fill(from, nil, most, length)
		if int64(len(got)) > most || !bytes.HasPrefix(want, got) || err == nil != (int64(len(got)) == most) {
			t.Fatalf("the first %d bytes: %d, %v", most, len(got), err)
		}
		if got, err = fill(from, got, 1<<20, length); !errors.Is(err, io.EOF) || !bytes.Equal(got, want) {
			t.Fatalf("all %d bytes: %d, %v", len(want), len(got), err)
		}
		if length >= 0 && cap(got) > max(len(want)+1, 512)+1 {
			t.Fatalf("%d bytes take %d", len(want), cap(got))
		}
	})
}

func TestHead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		begin string
		want  Head
	}{
		{`{"cluster": "a", "workflow": {"x": [1, 2`, Head{"cluster": "a"}},
		{`{"n": 1, "o": {"cluster": "b"}, "cluster": "a", "wor`, Head{"cluster": "a"}},
		{`{"workflow": {"cluster": "a", `, Head{}},
		{`{"cluster": "a`, Head{}},
		{`{"cluster": 7, "x": null}`, Head{}},
		{`[{"cluster": "a"}]`, Head{}},
		{``, Head{}},
		{"\x00", Head{}},
	} {
		if diff := cmp.Diff(tt.want, headOf([]byte(tt.begin))); diff != "" {
			t.Errorf("headOf(%q): -want +got\n%s", tt.begin, diff)
		}
	}
}
