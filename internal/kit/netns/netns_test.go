//go:build sites

package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary act as a program on a host: it listens on the address in its arguments, or dials this
// address.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "listen":
		ln, err := net.Listen("tcp", os.Args[2])
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(ln.Addr())
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the test closes the input
	case "dial":
		if _, err := net.DialTimeout("tcp", os.Args[2], 5*time.Second); err != nil {
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// reaches reports whether from can connect to a listener on to.
func reaches(t *testing.T, from, to *Host) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	listener := to.Command(ctx, os.Args[0], "listen", to.Addr.String()+":0")
	stdin, err := listener.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := listener.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := listener.Wait(); err != nil {
			t.Errorf("listener: %v", err)
		}
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("no program listens at %v: %v", to.Addr, err)
	}
	return from.Command(ctx, os.Args[0], "dial", strings.TrimSpace(address)).Run() == nil
}

func TestReachability(t *testing.T) {
	t.Parallel()
	tests := []struct {
		topology               Topology
		poolToNode, nodeToPool bool
	}{
		{OneNet, true, true},
		{NodeDrops, false, true},
		{NodeNAT, false, true},
		{PoolNAT, true, false},
		{BothNAT, false, false},
	}
	for _, tt := range tests {
		t.Run(string(tt.topology), func(t *testing.T) {
			t.Parallel()
			pool, node := New(t, tt.topology)
			if got := reaches(t, pool, node); got != tt.poolToNode {
				t.Errorf("the pool reaches the node: %v, want %v", got, tt.poolToNode)
			}
			if got := reaches(t, node, pool); got != tt.nodeToPool {
				t.Errorf("the node reaches the pool: %v, want %v", got, tt.nodeToPool)
			}
		})
	}
}

func TestUserCommandIsNotRoot(t *testing.T) {
	t.Parallel()
	_, node := New(t, OneNet)
	where, err := os.Readlink(node.Path())
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.UserCommand(t.Context(), "sh", "-c", "id -u; readlink /proc/self/ns/net").CombinedOutput()
	if id, net, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); err != nil || id == "0" || net != where {
		t.Errorf("it is user %s in %s (%v), want another than 0 in %s", id, net, err, where)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	var path string
	t.Run("a test", func(t *testing.T) {
		pool, _ := New(t, OneNet)
		path = pool.Path()
		if _, err := os.Readlink(path); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Readlink(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s after the test: %v, want it gone", path, err)
	}
}
