package transfer

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []request
		err  string
	}{
		{"", nil, ""},
		{`[ LocalFileName = "/d/a"; Url = "http://h/a" ][ url="https://h/\"b\\"; localfilename = "/d/b"; Size = 3; ]` + "\n",
			[]request{{"http://h/a", "/d/a"}, {`https://h/"b\`, "/d/b"}}, ""},
		{`[ Url = "a;b]"; LocalFileName = "/x" ]` + "\x00", []request{{"a;b]", "/x"}}, ""},
		{`Url = "http://h/a"`, nil, "ad 1 of the transfers: it does not begin with a bracket"},
		{`[ Url = "http://h/a"; LocalFileName = "/d/a" ] [ Url = "x" ]`, nil, "ad 2 of the transfers: it has no Url or no LocalFileName"},
		{`[ Url = "http://h/a`, nil, "ad 1 of the transfers: a text in it does not end"},
		{`[ Url = 3`, nil, "ad 1 of the transfers: it does not end"},
		{`[ Url`, nil, "ad 1 of the transfers: it does not end"},
	} {
		got, err := parseRequests(c.text)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" || said != c.err {
			t.Errorf("ParseRequests(%q): error %q, want %q (-want +got):\n%s", c.text, said, c.err, diff)
		}
	}
}

func FuzzParseRequests(f *testing.F) {
	f.Add(`[ LocalFileName = "/d/a"; Url = "http://h/a" ][ url="b" ]`)
	f.Add(`[ a = b; c = "\`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseRequests(text)
		if err != nil && all != nil {
			t.Errorf("%d requests and %v", len(all), err)
		}
		for _, r := range all {
			if r.URL == "" || r.File == "" {
				t.Errorf("a request of %+v", r)
			}
		}
	})
}

// serve starts a server whose answers depend on the path and on the number of earlier requests.
func serve(t *testing.T) (base string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		switch {
		case r.URL.Path == "/busy" && n < 3:
			http.Error(w, "later", http.StatusServiceUnavailable)
		case r.URL.Path == "/down":
			http.Error(w, "later", http.StatusBadGateway)
		case r.URL.Path == "/none":
			http.NotFound(w, r)
		case r.URL.Path == "/short", r.URL.Path == "/mended" && n == 1:
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "half")
		case r.URL.Path == "/silent":
			w.(http.Flusher).Flush()
			<-release
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		default:
			fmt.Fprint(w, "content of ", r.URL.Path)
		}
	}))
	t.Cleanup(func() { close(release); s.Close() })
	return s.URL, asked
}

// quick retries as often as Default, with shorter pauses.
var quick = Plugin{Pauses: []time.Duration{time.Millisecond, time.Millisecond}, Stall: time.Minute}

func TestFetch(t *testing.T) {
	t.Parallel()
	stalls := quick
	stalls.Stall = 20 * time.Millisecond
	for _, c := range []struct {
		path   string
		plugin Plugin
		want   string // content received; "": none
		says   string // the reason after the URL
		asked  int32
	}{
		{"/a", quick, "content of /a", "", 1},
		{"/moved", quick, "content of /there", "", 2},
		{"/busy", quick, "content of /busy", "", 3},
		{"/mended", quick, "content of /mended", "", 2},
		{"/none", quick, "", "the server says 404 Not Found", 1},
		{"/down", quick, "", "the server says 502 Bad Gateway, 3 times", 3},
		{"/short", quick, "", "the connection ended before the file did, 3 times", 3},
		{"/silent", stalls, "", "no data arrived for 20ms, 3 times", 3},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			base, asked := serve(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			n, err := c.plugin.fetch(t.Context(), request{base + c.path, file})
			said := ""
			if err != nil {
				said = strings.TrimPrefix(err.Error(), base+c.path+": ")
			}
			if said != c.says || int(n) != len(c.want) {
				t.Errorf("%d bytes, %q, want %d, %q", n, said, len(c.want), c.says)
			}
			if asked := asked.Load(); asked != c.asked && c.path != "/silent" { // a slow machine stalls sooner
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
			left, err := filepath.Glob(dir + "/*")
			if got, _ := os.ReadFile(file); string(got) != c.want || err != nil || (c.want == "") != (len(left) == 0) {
				t.Errorf("the file has %q, and there is %q", got, left)
			}
		})
	}
}

func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"osdf:///ospool/key":       "osdf:///ospool/key: this worker fetches by http and https, and not by osdf",
		"ftp://me:secret@h/f":      "ftp://me:xxxxx@h/f: this worker fetches by http and https, and not by ftp",
		"http://h:port/secret@":    "an input of the job is not a valid URL",
		"http://127.0.0.1:1/f?k=v": "http://127.0.0.1:1/f: dial tcp 127.0.0.1:1: connect: connection refused, 3 times",
	} {
		_, err := quick.fetch(t.Context(), request{given, filepath.Join(t.TempDir(), "f")})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

// HTCondor puts the URL of a missing file into the hold reason, which every user may read, so it must not contain
// secrets.
func TestResultKeepsSecrets(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://me:secret@h/f?signature=secret#secret": `TransferUrl = "https://me:xxxxx@h/f"`,
		"http://h:port/secret":                          `TransferUrl = "http"`,
	} {
		ad := result{request: request{given, "/d/f"}, Err: errors.New("no")}.format()
		if strings.Contains(ad, "secret") || !strings.Contains(ad, want) {
			t.Errorf("of %s it says %s", given, ad)
		}
	}
	if ad := (result{request: request{"http://h/f?q", "/d/f"}}).format(); !strings.Contains(ad, `TransferUrl = "http://h/f?q"`) {
		t.Errorf("of a file that came it says %s", ad)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	base, _ := serve(t)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	text := fmt.Sprintf("[ LocalFileName = \"%s/a\"; Url = \"%s/a\" ]\n[ LocalFileName = \"%[1]s/b\"; Url = \"%[2]s/none\" ]\n", dir, base)
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fetched, err := quick.run(t.Context(), in, out)
	if fetched || err != nil {
		t.Errorf("run = %v, %v, want a file to be missing", fetched, err)
	}
	b, err := os.ReadFile(out)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], "TransferSuccess = true") || !strings.Contains(lines[0], "TransferFileBytes = 13") ||
		!strings.Contains(lines[1], "TransferSuccess = false") || !strings.Contains(lines[1], base+"/none: the server says 404 Not Found") {
		t.Errorf("the results are %q, %v", lines, err)
	}
	if err := quick.refuse(in, out); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(out); err != nil || strings.Count(string(b), "sends nothing") != 2 {
		t.Errorf("to be sent: %q, %v", b, err)
	}
	if _, err := quick.run(t.Context(), filepath.Join(dir, "nothing"), out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("run without a file = %v", err)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	if s := methodsAd(false); !strings.Contains(s, "\nSupportedMethods = \"http,https\"\n") || !strings.Contains(s, "MultipleFileSupport = true\n") {
		t.Errorf("methodsAd = %q", s)
	}
	if s := methodsAd(true); !strings.Contains(s, ",osdf,") {
		t.Errorf("methodsAd = %q", s)
	}
	for _, scheme := range strings.Split(unserved, ",") {
		if slices.Contains(strings.Split(served, ","), scheme) {
			t.Errorf("%s is served and refused", scheme)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	base, _ := serve(t)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(fmt.Sprintf("[ LocalFileName = \"%s/a\"; Url = \"%s/a\" ]", dir, base)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string // on stdout
		err  string
	}{
		{[]string{"-classad"}, methodsAd(false), ""},
		{[]string{ClaimOthers, "-classad"}, methodsAd(true), ""},
		{[]string{ClaimOthers, "-infile", in, "-outfile", out}, "", ""},
		{[]string{"-infile", in, "-outfile", out, "-upload"}, "", ErrMissing.Error()},
		{[]string{"-infile", in}, "", "want -classad"},
		{[]string{"http://h/f", "/d/f"}, "", "want -classad"},
		{[]string{"-unknown"}, "", "-unknown"},
	} {
		var said strings.Builder
		err := quick.Command(t.Context(), c.args, &said)
		if said.String() != c.says || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q prints %q and returns %v, want %q and %q", c.args, said.String(), err, c.says, c.err)
		}
	}
}
