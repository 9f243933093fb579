//go:build sites

package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/netns"
	"github.com/corral-pilot/corral/internal/node/pilot"
)

func init() { hostRoles["port"], hostRoles["pilot"] = actPort, actPilot }

// actPort serves a worker port until its input ends.
func actPort() error {
	lg := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cert, err := wire.LoadOrCreateCertificate(os.Getenv("POOL_TEST_DIR"))
	if err != nil {
		return err
	}
	gate := newGate(lg, dispatch.Config{})
	defer gate.d.Close()
	port := port.New(lg, gate, broker.Reach)
	ln, digest, err := port.ListenTLS(os.Getenv("POOL_TEST_ADDRESS")+":0", cert)
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr(), digest)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return port.Serve(ctx, ln)
}

// actPilot negotiates over its link with the port, which also plays the collector.
func actPilot() error {
	lg := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	port, digest, _ := strings.Cut(os.Getenv("POOL_TEST_PORT"), " ")
	l, err := pilot.Dial(ctx, lg, pilot.LinkConfig{Tag: "tag", Token: testToken, Holder: "one", Addresses: []string{"tls:" + port}, CertDigest: digest})
	if err != nil {
		return err
	}
	defer l.Close()
	choice, err := broker.Negotiate(ctx, broker.Config{Collector: port, CallBack: l.CallBack})
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(choice))
}

func TestPilotBehindFirewallIsCalledBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		topology netns.Topology
		way      corral.BrokerMode
		why      string
	}{
		{netns.OneNet, corral.BrokerNone, "reached this node"},
		{netns.NodeDrops, corral.BrokerCCB, "timed out"},
		{netns.NodeNAT, corral.BrokerCCB, "no route"},
	}
	for _, tt := range tests {
		t.Run(string(tt.topology), func(t *testing.T) {
			t.Parallel()
			poolHost, node := netns.New(t, tt.topology)
			port := poolHost.Command(context.Background(), os.Args[0])
			port.Env = append(os.Environ(), "POOL_TEST_ROLE=port", "POOL_TEST_DIR="+t.TempDir(), "POOL_TEST_ADDRESS="+poolHost.Addr.String())
			port.Stderr = t.Output()
			stdin, err := port.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := port.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := port.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				stdin.Close()
				if err := port.Wait(); err != nil {
					t.Errorf("port: %v", err)
				}
			})
			address, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pilot := node.Command(context.Background(), os.Args[0])
			pilot.Env = append(os.Environ(), "POOL_TEST_ROLE=pilot", "POOL_TEST_PORT="+strings.TrimSpace(address))
			pilot.Stderr = t.Output()
			said, err := pilot.Output()
			var got broker.Choice
			if err := errors.Join(err, json.NewDecoder(bytes.NewReader(said)).Decode(&got)); err != nil {
				t.Fatal(err)
			}
			if got.Way != tt.way || got.Address != node.Addr || !strings.Contains(got.Reason, tt.why) {
				t.Errorf("choice %+v, want %s at %v as %q", got, tt.way, node.Addr, tt.why)
			}
		})
	}
}
