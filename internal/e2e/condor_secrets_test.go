//go:build sites

package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
)

// A thief copies the token of a worker that lives. He can do nothing with it but offer slots, and when the attempt is
// over not even that.
func TestCondorStolenToken(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t)
	u.startPool(t)
	id := u.must("glidein", "create", "--site", "here", "--cluster", "mine", "--cpus", "2", "--wait", "-q")
	u.write("long.sub", "executable = /bin/sleep\ntransfer_executable = false\narguments = 600\nlog = long.log\nqueue\n")
	u.sh("condor_submit -terse long.sub")
	run := u.must("run", u.workflow("long", task{id: "long", script: "sleep 600"}), "--cluster", "mine", "--detach", "-q")
	u.until("a job and a task that run", time.Minute, func() bool {
		return strings.Contains(u.raw("long.log"), "Job executing") && u.user.run(run).Tasks.Running == 1
	})
	u.noSecretShows(id)

	stolen := u.find(u.dir+"/cache/corral/sites/here", "pool.token")
	thief := u.thief(stolen)
	if out, err := thief.Run(t.Context(), nil, "condor_status", "-any", "-long"); err != nil || !strings.Contains(string(out), "CorralAttempt") {
		t.Errorf("reading public ads: %v\n%s", err, out)
	} else if private := regexp.MustCompile(`(?mi)^(ClaimIds?|ClaimIdList|PublicClaimIds|Capability|ChildClaimIds|PairedClaimId|TransferKey) = .*`).FindAllString(string(out), -1); len(private) > 0 {
		t.Errorf("a thief reads %q", private)
	}
	schedd := "MyType = \"Scheduler\"\nName = \"thief\"\nMachine = \"thief\"\nMyAddress = \"<127.0.0.1:9>\"\nScheddIpAddr = \"<127.0.0.1:9>\"\n"
	for what, try := range map[string]func() error{
		"submit": func() error {
			_, err := thief.Run(t.Context(), []byte("executable = /bin/true\nqueue\n"), "condor_submit", "-name", u.sh("condor_status -schedd -af Name"), "-")
			return err
		},
		"advertise a schedd": func() error {
			_, err := thief.Run(t.Context(), []byte(schedd), "condor_advertise", "-tcp", "UPDATE_SCHEDD_AD")
			return err
		},
		"read private attributes": func() error { return ping(t, thief, "NEGOTIATOR") },
	} {
		if try() == nil {
			t.Errorf("a thief can %s", what)
		}
	}
	if err := ping(t, thief, "ADVERTISE_STARTD"); err != nil {
		t.Errorf("the stolen token is refused while its attempt lives: %v", err)
	}
	u.must("glidein", "remove", id, "--now", "--wait")
	from := time.Now()
	u.until("refusal of the stolen token", 2*time.Minute, func() bool { return ping(t, thief, "ADVERTISE_STARTD") != nil })
	t.Logf("the token was refused %v after its glidein was gone", time.Since(from).Round(time.Millisecond))
	u.must("down", "--force")
}

func ping(t *testing.T, tools condor.Tools, right string) error {
	_, err := tools.Run(t.Context(), nil, "condor_ping", "-type", "collector", right)
	return err
}

// thief returns HTCondor's commands with nothing but a token.
func (u *condorUser) thief(tokenFile string) condor.Tools {
	u.t.Helper()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		u.t.Fatal(err)
	}
	mine := read[corral.Cluster](u.user, "cluster", "show", "mine")
	tools, err := condor.Attach(condor.RemoteConfig{Dir: u.open + "/thief", Release: mine.HTCondor, Collector: mine.Collector, RunAs: programs.Unprivileged()}, strings.TrimSpace(string(token)))
	if err != nil {
		u.t.Fatal(err)
	}
	return tools
}

// find returns the one file below dir that has this name.
func (u *condorUser) find(dir, name string) (found string) {
	u.t.Helper()
	for _, f := range files(u.t, dir) {
		if filepath.Base(f) == name {
			found = filepath.Join(dir, f)
		}
	}
	if found == "" {
		u.t.Fatalf("no file %s below %s", name, dir)
	}
	return found
}

var idToken = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.([\w-]+)`)

// secrets returns the secrets that are in the user's files; those must be private, and none of them a log or the database.
func (u *condorUser) secrets() (found []string) {
	u.t.Helper()
	kinds := map[string]int{}
	for _, root := range []string{u.dir, u.open} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			info, _ := d.Info()
			b, _ := os.ReadFile(path)
			var inside []string
			for _, m := range idToken.FindAllSubmatch(b, -1) { // what signs it is the secret part
				inside = append(inside, string(m[1]))
			}
			var o struct{ Pilot struct{ Token string } }
			if d.Name() == "order.json" && json.Unmarshal(b, &o) == nil && o.Pilot.Token != "" {
				inside = append(inside, o.Pilot.Token)
			}
			if len(inside) == 0 {
				return nil
			}
			kinds[d.Name()]++
			if info.Mode().Perm()&0o077 != 0 {
				u.t.Errorf("%s has a token and mode %v", path, info.Mode().Perm())
			}
			found = append(found, inside...)
			return nil
		})
	}
	if kinds["order.json"] == 0 || kinds["pool.token"] == 0 {
		u.t.Errorf("tokens are in %v, want some in order.json and pool.token", kinds)
	}
	u.t.Logf("files with tokens: %v", kinds)
	slices.Sort(found)
	return slices.Compact(found)
}

// noSecretShows looks for tokens wherever somebody else might.
func (u *condorUser) noSecretShows(glidein string) {
	u.t.Helper()
	secrets := u.secrets()
	places := map[string]string{
		"condor_status": u.sh("condor_status -any -long"), "condor_q": u.sh("condor_q -long"), "condor_history": u.sh("condor_history -long"),
		"glidein history": u.must("glidein", "history", glidein, "-o", "json"), "cluster env": u.must("cluster", "env", "mine", "-o", "json"),
	}
	for _, noun := range []string{"cluster", "site", "glidein", "runs", "package", "mirror"} {
		places[noun+" list"] = u.must(noun, "list", "-o", "json")
	}
	for _, args := range [][]string{{"cluster", "show", "mine"}, {"cluster", "history", "mine"}, {"cluster", "workers", "mine"},
		{"site", "show", "here"}, {"site", "history", "here"}, {"glidein", "show", glidein}} {
		places[strings.Join(args, " ")] = u.must(append(args, "-o", "json")...)
	}
	jobs := 0
	for _, p := range u.processes() {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		places["process "+p.command] += p.command + string(env)
		if strings.HasSuffix(strings.TrimSpace(p.command), "sleep 600") {
			jobs++
		}
	}
	if jobs < 2 {
		u.t.Errorf("the job and the task are not among the processes %v", u.processes())
	}
	logs := 0
	for _, f := range files(u.t, u.dir) {
		if strings.Contains(strings.ToLower(f), "log") || strings.Contains(f, "corrald.db") || strings.Contains(f, "report.json") {
			b, _ := os.ReadFile(filepath.Join(u.dir, f))
			places[f] = string(b)
			logs++
		}
	}
	u.t.Logf("%d tokens looked for in %d places, %d of them files", len(secrets), len(places), logs)
	for place, text := range places {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				u.t.Errorf("%s shows a token", place)
			}
		}
	}
}
