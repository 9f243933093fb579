package process

import (
	"slices"
	"strings"
	"testing"
)

func TestFindFanout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, way string
		hosts      int
		want       []string
		says       string // part of the error
	}{
		{"", "", 2, []string{}, ""},
		{"n1", "", 2, []string{"n1"}, ""},
		{"n1 n2 n3", "ssh", 3, []string{"n1", "n2", "n3"}, ""},
		{" n1\tn2.example.org \n", "ssh", 2, []string{"n1", "n2.example.org"}, ""},
		{"n1 n2 n3", "ssh", 2, []string{"n1", "n2"}, ""},
		{"n1 n2", "rsh", 2, nil, `CORRAL_FANOUT="rsh": want srun or ssh`},
		{"n1 -oProxyCommand=x", "ssh", 2, nil, "is not the name of a node"},
		{"n1 n2,n3", "srun", 2, nil, "is not the name of a node"},
		{"n1 $(x)", "ssh", 2, nil, "is not the name of a node"},
	} {
		env := map[string]string{nodesVariable: c.nodes, fanoutVariable: c.way}
		f, err := FindFanout(func(name string) string { return env[name] }, c.hosts, 1)
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("FindFanout(%q, %q): %v, want %q", c.nodes, c.way, err, c.says)
		}
		if err == nil && !slices.Equal(f.Nodes, c.want) {
			t.Errorf("FindFanout(%q): the nodes are %q, want %q", c.nodes, f.Nodes, c.want)
		}
	}
}

// No line that a shell reads contains a value that the user or the site chose.
func TestCommandToAnotherNode(t *testing.T) {
	t.Parallel()
	f := Fanout{Nodes: []string{"n1", "n2"}, way: "ssh", program: "/it's $HOME/pilot", cpus: 3}
	argv, first := f.command("n2")
	if first != "/it's $HOME/pilot\n" || !slices.Equal(argv[len(argv)-3:], []string{"--", "n2", overSSH}) {
		t.Errorf("by ssh: %q after %q", argv, first)
	}
	f.way, f.overlap = "srun", true
	argv, first = f.command("n2")
	if first != "" || !slices.Contains(argv, "--overlap") || !slices.Contains(argv, "--cpus-per-task=3") ||
		!slices.Equal(argv[len(argv)-2:], []string{f.program, HostCommand}) {
		t.Errorf("by srun: %q after %q", argv, first)
	}
	f.overlap = false
	if argv, _ := f.command("n2"); slices.Contains(argv, "--overlap") {
		t.Errorf("by an old srun: %q", argv)
	}
}
