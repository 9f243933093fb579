package broker

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

const testNonce = "0123456789abcdef"

// say returns the address of a listener that sends text to every connection, once it may, and calls said.
func say(t *testing.T, text string, may <-chan struct{}, said func()) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				select {
				case <-may:
					_, _ = io.WriteString(nc, text)
					said()
				case <-t.Context().Done():
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// always permits sending at once.
func always() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestTheFirstAddressIsPreferred(t *testing.T) {
	t.Parallel()
	inTime(t, "the first, though the second answers sooner", func() bool {
		second := make(chan struct{})
		late, now := say(t, testNonce, second, func() {}), say(t, testNonce, always(), func() { close(second) })
		got, err := Reach(context.Background(), []string{late, now}, testNonce)
		return got == late && err == nil
	})
	inTime(t, "the second, as the first says nothing, without waiting for that", func() bool {
		never, now := say(t, testNonce, nil, func() {}), say(t, testNonce, always(), func() {})
		began := time.Now()
		got, err := Reach(context.Background(), []string{never, now}, testNonce)
		return got == now && err == nil && time.Since(began) < dialTimeout
	})
}

// inTime repeats a test that a busy machine may fail, because the limits are Reach's own and short.
func inTime(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 20 {
		if is() {
			return
		}
	}
	t.Errorf("Reach() never returned %s", what)
}

func TestReachSaysWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	gone, other := closed(t), say(t, "220 mail.example.org", always(), func() {})
	_, err := Reach(context.Background(), []string{gone, other}, testNonce)
	if corral.KindOf(err) != corral.Failed {
		t.Fatalf("Reach() = %v, want Failed", err)
	}
	if want := gone + ": connection refused; " + other + ": another program answers there"; err.Error() != want {
		t.Errorf("Reach() = %v\nwant %s", err, want)
	}
	if strings.Contains(err.Error(), "mail") {
		t.Errorf("Reach() = %v, which passes on what somebody else says", err)
	}
}

func TestReachEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inTime(t, "an error at once", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := Reach(ctx, []string{say(t, testNonce, nil, func() {})}, testNonce)
		return err != nil && time.Since(began) < dialTimeout
	})
}

func TestNegotiateRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{}, {Collector: "host"}, {Collector: "host:0"}, {Collector: ":9618"}, {Collector: "host:9618", CCB: []string{"<host:9618>"}},
		{Collector: "host:9618", CCB: make([]string, 17)}, {Collector: "host:9618", Schedd: "x"},
	} {
		if _, err := Negotiate(context.Background(), c); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Negotiate(%+v) = %v, want it invalid", c, err)
		}
	}
}

// An answer of the pool's side is accepted only for addresses at which this node listens.
func TestCallBackMustNameOneOfOurs(t *testing.T) {
	t.Parallel()
	got, err := Negotiate(context.Background(), Config{
		Collector: listen(t), CallBack: func(context.Context, []string, string) (string, error) { return "198.51.100.1:2000", nil },
	})
	if err != nil || got.Way != corral.BrokerCCB {
		t.Errorf("Negotiate() = %+v, %v; want CCB, as nobody is known to have reached the node", got, err)
	}
}

func TestPoolThatIsDownMayComeBack(t *testing.T) {
	t.Parallel()
	_, err := Negotiate(context.Background(), Config{Collector: closed(t), CallBack: Reach})
	if corral.KindOf(err) != corral.Unavailable {
		t.Errorf("Negotiate() = %v, want it unavailable", err)
	}
}
