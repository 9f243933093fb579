//go:build sites

package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/netns"
)

// TestMain lets the test binary act as a program of a host behind a firewall.
func TestMain(m *testing.M) {
	roles := map[string]func(in *bufio.Reader) error{"collector": actCollector, "node": actNode, "pool": actPool, "probe": actProbe, "attend": actAttend}
	act := roles[os.Getenv("BROKER_TEST_ROLE")]
	if act == nil {
		os.Exit(m.Run())
	}
	if err := act(bufio.NewReader(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A line is a message between the test and its programs, one line of JSON.
type line struct {
	Config    *Config  `json:",omitempty"` // to the node: measure
	Ask       bool     `json:",omitempty"` // with Config: a pool's side can be asked
	Addresses []string `json:",omitempty"` // from the node, to the pool: dial these
	Nonce     string   `json:",omitempty"`
	Reached   string   `json:",omitempty"` // from the pool, to the node
	Trouble   string   `json:",omitempty"`
	Choice    *Choice  `json:",omitempty"` // from the node, at the end; or Refusal
	Refusal   string   `json:",omitempty"`

	Took time.Duration `json:",omitempty"` // with either
}

func (c *Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"Mode": c.Mode, "Collector": c.Collector, "CCB": c.CCB, "Schedd": c.Schedd})
}

func tell(w io.Writer, l line) error { return json.NewEncoder(w).Encode(l) }

func hearLine(in *bufio.Reader) (line, error) {
	var l line
	text, err := in.ReadBytes('\n')
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}

// actCollector listens until its input ends.
func actCollector(in *bufio.Reader) error {
	ln, err := net.Listen("tcp", os.Getenv("BROKER_TEST_ADDRESS")+":0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	_, _ = in.ReadByte()
	return nil
}

// actPool reports that it is ready, and answers until its input ends.
func actPool(in *bufio.Reader) error {
	answer := line{}
	for {
		if err := tell(os.Stdout, answer); err != nil {
			return err
		}
		l, err := hearLine(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer = line{}
		if answer.Reached, err = Reach(context.Background(), l.Addresses, l.Nonce); err != nil {
			answer.Trouble = err.Error()
		}
	}
}

func actNode(in *bufio.Reader) error {
	l, err := hearLine(in)
	if err != nil {
		return err
	}
	if l.Ask {
		l.Config.CallBack = func(_ context.Context, addresses []string, nonce string) (string, error) {
			if err := tell(os.Stdout, line{Addresses: addresses, Nonce: nonce}); err != nil {
				return "", err
			}
			answer, err := hearLine(in)
			if err == nil && answer.Trouble != "" {
				err = corral.Errorf(corral.Failed, "%s", answer.Trouble)
			}
			return answer.Reached, err
		}
	}
	began := time.Now()
	choice, err := Negotiate(context.Background(), *l.Config)
	took := time.Since(began)
	if err != nil {
		return tell(os.Stdout, line{Refusal: err.Error(), Took: took})
	}
	return tell(os.Stdout, line{Choice: &choice, Took: took})
}

// actProbe reads a probe and the file for its output.
func actProbe(in *bufio.Reader) error {
	var p Probe
	path, err := readProbe(in, &p)
	if err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = in.ReadByte()
	}()
	return p.Run(ctx, out)
}

// actAttend reads the same, follows the file, and reports the findings.
func actAttend(in *bufio.Reader) error {
	path, err := readProbe(in, new(Probe))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	f, err := Attend(ctx, func(context.Context) ([]byte, error) {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return append([]byte("Welcome to the site\n"), text...), err
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func readProbe(in *bufio.Reader, p *Probe) (path string, err error) {
	text, err := in.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	return os.Getenv("BROKER_TEST_FILE"), json.Unmarshal(text, p)
}

// A program is a test binary in a role.
type program struct {
	io.Writer
	*bufio.Reader
}

// play starts a program on a host; it ends with the test.
func play(t *testing.T, h *netns.Host, role string, env ...string) program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	cmd := h.Command(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), "BROKER_TEST_ROLE="+role, "BROKER_TEST_ADDRESS="+h.Addr.String())
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", role, err)
		}
		cancel()
	})
	return program{stdin, bufio.NewReader(stdout)}
}

// negotiate runs Negotiate on node. Requests to the pool's side are handled on pool by a program that is already
// running, because starting one may take as long as a node waits.
func negotiate(t *testing.T, pool, node *netns.Host, c Config, ask bool) line {
	t.Helper()
	p, there := play(t, node, "node"), play(t, pool, "pool")
	if _, err := hearLine(there.Reader); err != nil {
		t.Fatal(err)
	}
	if err := tell(p, line{Config: &c, Ask: ask}); err != nil {
		t.Fatal(err)
	}
	for {
		l, err := hearLine(p.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Addresses) == 0 {
			return l
		}
		if err := tell(there, l); err != nil {
			t.Fatal(err)
		}
		answer, err := hearLine(there.Reader)
		if err := errors.Join(err, tell(p, answer)); err != nil {
			t.Fatal(err)
		}
	}
}

// collector starts a collector on pool and returns its address.
func collector(t *testing.T, pool *netns.Host) string {
	t.Helper()
	address, err := play(t, pool, "collector").ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

func TestFirewalls(t *testing.T) {
	t.Parallel()
	const auto, none, ccb = corral.BrokerAuto, corral.BrokerNone, corral.BrokerCCB
	tests := []struct {
		topology netns.Topology
		mode     corral.BrokerMode
		unasked  bool
		way      corral.BrokerMode // empty: refused
		say      []string
	}{
		{netns.OneNet, auto, false, none, []string{"reached this node"}},
		{netns.OneNet, ccb, false, ccb, []string{"asked for"}},
		{netns.NodeDrops, auto, false, ccb, []string{"timed out"}},
		{netns.NodeDrops, none, false, "", []string{"timed out", "--broker ccb would work"}},
		{netns.NodeDrops, auto, true, ccb, []string{"it is unknown whether"}},
		{netns.NodeNAT, auto, false, ccb, []string{"no route"}},
		{netns.NodeNAT, none, false, "", []string{"no route", "--broker ccb would work"}},
		{netns.PoolNAT, auto, false, "", []string{"no route", "relay", "does reach this node"}},
		{netns.PoolNAT, ccb, false, "", []string{"no route", "relay"}},
		{netns.BothNAT, auto, false, "", []string{"no route", "relay", "both sides are private"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s, --broker %s, unasked %v", tt.topology, tt.mode, tt.unasked), func(t *testing.T) {
			t.Parallel()
			pool, node := netns.New(t, tt.topology)
			c := Config{Mode: tt.mode, Collector: collector(t, pool)}
			got := negotiate(t, pool, node, c, !tt.unasked)
			if got.Took > totalTimeout+time.Minute { // a busy machine may be late
				t.Errorf("it took %v", got.Took)
			}
			said := got.Refusal
			if got.Choice != nil {
				said = got.Choice.Reason
				if got.Choice.Way != tt.way || got.Choice.Address != node.Addr {
					t.Errorf("choice %+v, want %q at %v", got.Choice, tt.way, node.Addr)
				}
				t.Logf("%s", strings.Join(got.Choice.Measured, "\n"))
			} else if tt.way != "" {
				t.Errorf("refused: %s, want %s", said, tt.way)
			}
			t.Logf("%v: %s", got.Took, said)
			if i := slices.IndexFunc(tt.say, func(s string) bool { return !strings.Contains(said, s) }); i >= 0 {
				t.Errorf("said %q, want %q in it", said, tt.say[i])
			}
		})
	}
}

func TestProbeWithoutLink(t *testing.T) {
	t.Parallel()
	tests := []struct {
		topology netns.Topology
		auto     corral.BrokerMode // empty: refused
		reached  bool
	}{
		{netns.OneNet, corral.BrokerNone, true},
		{netns.NodeDrops, corral.BrokerCCB, false},
		{netns.PoolNAT, "", true},
	}
	for _, tt := range tests {
		t.Run(string(tt.topology), func(t *testing.T) {
			t.Parallel()
			pool, node := netns.New(t, tt.topology)
			request := Probe{Collector: collector(t, pool), Hold: corral.Seconds(4 * time.Minute)}
			file := "BROKER_TEST_FILE=" + filepath.Join(t.TempDir(), "out")
			prober, attender := play(t, node, "probe", file), play(t, pool, "attend", file)
			for _, p := range []program{prober, attender} {
				if err := json.NewEncoder(p).Encode(request); err != nil {
					t.Fatal(err)
				}
			}
			var f Findings
			if err := json.NewDecoder(attender).Decode(&f); err != nil {
				t.Fatal(err)
			}
			choice, err := f.Decide("")
			if choice.Way != tt.auto || !f.Node.Asked || (f.Node.Reached != "") != tt.reached {
				t.Errorf("findings %+v, choice %+v, %v; want %q, reached %v", f, choice, err, tt.auto, tt.reached)
			}
		})
	}
}
