package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

var siteFiles = []struct {
	name, text string
	want       api.NewSite // expected unless err is set
	err        string
}{
	{"YAML", "name: here\ncontact: 'local:'\nbatch: fork\nroot: /srv\n", api.NewSite{Name: "here", Contact: "local:", Batch: "fork", Root: "/srv"}, ""},
	{"JSON", `{"name": "here", "contact": "local:", "batch": "fork"}`, api.NewSite{Name: "here", Contact: "local:", Batch: "fork"}, ""},
	{"comment", "# only\nname: here # yes\n", api.NewSite{Name: "here"}, ""},
	{"empty", "", api.NewSite{}, ""}, // corrald reports missing fields
	{"unknown field", "name: here\nwalltime: 1h\n", api.NewSite{}, `f: [2:1] unknown field "walltime"`},
	{"field twice", "name: here\nname: there\n", api.NewSite{}, "f: [2:1] "},
	{"a list for a name", "batch: fork\nname: [a, b]\n", api.NewSite{}, "f: [2:7] want text"},
	{"text for a list", "name: a\nsite_options: --exclusive\n", api.NewSite{}, "f: [2:15] want a list"},
	{"neither true nor false", "accept_host_key: maybe\n", api.NewSite{}, "f: [1:18] want true or false"},
	{"half an attempt", "name: a\nmax_running: 2.5\n", api.NewSite{}, "f: [2:14] want a whole number"},
	{"a number in quotes", `{"max_queued": "2"}`, api.NewSite{}, "f: [1:16] want a whole number"},
	{"a list of numbers", "max_queued: [1]\n", api.NewSite{}, "f: [1:13] want a whole number"},
	{"a number beyond all", "max_queued: 1e99\n", api.NewSite{}, "f: [1:13] want a whole number"},
	{"numbers", "max_running: 2\nmax_queued: -1\naccount: '0123'\n",
		api.NewSite{MaxRunning: 2, MaxQueued: -1, BatchOptions: corral.BatchOptions{Account: "0123"}}, ""},
	// YAML converts the account to 83.
	{"a number for a name", "name: a\naccount: 0123\n", api.NewSite{}, "f: [2:10] want text: put it in quotes"},
	{"a truth for a name", "queue: true\n", api.NewSite{}, "f: [1:8] want text: put it in quotes"},
	{"nothing", "name: a\nmax_running:\n", api.NewSite{Name: "a"}, ""},
	{"byte order mark", "\ufeffname: here\n", api.NewSite{Name: "here"}, ""},
	{"two documents", "name: a\n---\nname: b\n", api.NewSite{}, "f: contains more than one site"},
	{"a list", "- name: a\n", api.NewSite{}, "f: "},
	{"junk", "\x00\xff{{{", api.NewSite{}, "f: "},
}

func TestParseSite(t *testing.T) {
	t.Parallel()
	for _, tt := range siteFiles {
		got, err := parseSite("f", []byte(tt.text))
		if tt.err != "" {
			if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("%s: %v, want an Invalid error that begins %q", tt.name, err, tt.err)
			}
		} else if err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, cmp.Diff(tt.want, got))
		}
	}
}

func FuzzParseSite(f *testing.F) {
	for _, s := range siteFiles {
		f.Add([]byte(s.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseSite("f", b)
		if err != nil && (!cmp.Equal(n, api.NewSite{}) || corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "f: ")) {
			t.Errorf("parseSite(%q) = %+v, %v", b, n, err)
		}
	})
}

// A few lines of nested aliases can expand to more than fits in memory.
func TestSiteFilesHaveNoAliases(t *testing.T) {
	t.Parallel()
	text := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'z'; c++ {
		text += fmt.Sprintf("%c: &%[1]c [*%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c]\n", c, c-1)
	}
	_, err := parseSite("f", []byte(text+"site_options: *y\n"))
	if want := "f: [2:8] aliases are not supported: write out the value"; corral.KindOf(err) != corral.Invalid || err.Error() != want {
		t.Errorf("parseSite = %v, want %s", err, want)
	}
}

func TestReadAll(t *testing.T) {
	t.Parallel()
	got, err := readAll(t.Context(), "-", strings.NewReader("name: x"), 7)
	if err != nil || string(got) != "name: x" {
		t.Errorf("readAll of stdin = %q, %v", got, err)
	}
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, make([]byte, api.MaxBody+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{long, "/dev/zero"} {
		if _, err := readAll(t.Context(), file, nil, api.MaxBody); err == nil || err.Error() != file+" is longer than 1 MiB" {
			t.Errorf("readAll of a long file: %v", err)
		}
	}
}

// Below the table of a site, the nodes that its next attempts avoid are shown.
func TestShowSite(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 4, 0, 0, time.Local) }
	site := corral.Site{ID: 2, Name: "hpc", State: corral.SiteReady, Avoided: []corral.BadNode{
		{Node: "node17", Attempts: 3, Why: "disk of /scratch: full", Last: at(5), Since: at(5), Until: at(27)},
	}}
	for _, tt := range []struct {
		format string
		quiet  bool
		want   string
	}{
		{formTable, false, "\n\nAVOIDED NODE  ATTEMPTS  SINCE             UNTIL             REASON\n" +
			"node17               3  2026-01-02 05:04  2026-01-03 03:04  disk of /scratch: full\n"},
		{formTable, true, "hpc\n"},
		{formYAML, false, "\navoided_nodes:\n- node: node17\n  attempts: 3\n  reason: \"disk of /scratch: full\"\n"},
	} {
		var c console
		p := c.printer(tt.format)
		p.quiet = tt.quiet
		if err := (siteVerbs{p}).show(site); err != nil || !strings.Contains(c.out.String(), tt.want) {
			t.Errorf("%s, quiet %t: %v\n%s\nwithout\n%s", tt.format, tt.quiet, err, &c.out, tt.want)
		}
	}
}
