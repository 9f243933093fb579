//go:build sites

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A prometheus is a real one, which scrapes a corrald.
type prometheus struct {
	*user
	folder string // of its programs
	url    string
}

// startPrometheus has Debian's Prometheus scrape the corrald of u every second, with the alerts of monitoring/.
func startPrometheus(u *user, target string) *prometheus {
	u.t.Helper()
	folder, err := exec.CommandContext(u.t.Context(), "../../scripts/prometheus").Output()
	if err != nil {
		u.t.Fatal("scripts/prometheus: ", err)
	}
	p := &prometheus{user: u, folder: strings.TrimSpace(string(folder))}
	rules, err := filepath.Abs("../../monitoring/alerts.yml")
	if err != nil {
		u.t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: corral, static_configs: [{targets: [%q]}]}]\n", rules, target)
	file := filepath.Join(u.dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		u.t.Fatal(err)
	}
	address := freeAddress(u.t).String()
	p.url = "http://" + address
	cmd := exec.Command(filepath.Join(p.folder, "bin/prometheus"), "--config.file="+file,
		"--storage.tsdb.path="+u.dir+"/tsdb", "--web.listen-address="+address)
	log, err := os.Create(filepath.Join(u.dir, "prometheus.log"))
	if err != nil {
		u.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if u.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			u.t.Logf("prometheus.log:\n%s", tail(text, 30))
		}
	})
	return p
}

// ask posts an expression to Prometheus' API, and returns how many series the answer has.
func (p *prometheus) ask(expr string) (series int, err error) {
	resp, err := http.PostForm(p.url+"/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Status string
		Error  string
		Data   struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return 0, fmt.Errorf("%s: %s %w", resp.Status, text, err)
	}
	return len(answer.Data.Result), nil
}

// promtool has Prometheus' own tool check a file.
func (p *prometheus) promtool(args ...string) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.folder, "bin/promtool"), args...)
	cmd.Dir = "../../monitoring"
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// expressions are those of the dashboard, with its variables as they are at first, and those of the alerts without the
// number that each is compared with.
func expressions(t testing.TB) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../monitoring/dashboard.json")
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	alerts, err2 := os.ReadFile("../../monitoring/alerts.yml")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	variables := strings.NewReplacer("$owner", ".*", "$site", ".*", "$window", "1h")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, variables.Replace(target.Expr))
		}
	}
	compared := regexp.MustCompile(`^(.*) [<>] [0-9.e+]+$`)
	for _, line := range regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(string(alerts), -1) {
		m := compared.FindStringSubmatch(line[1])
		if m == nil {
			t.Errorf("the alert on %s does not end with an operator and a number", line[1])
			continue
		}
		all = append(all, m[1])
	}
	return all
}

// Each expression of the dashboard and of the alerts is answered with series by a real Prometheus that scrapes a corrald
// with work; the alert on a corrald that is gone fires when it is killed.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	target := freeAddress(t).String()
	u := newUser(t, "CORRALD_METRICS_LISTEN="+target)
	u.must("up")
	p := startPrometheus(u, target)
	p.promtool("check", "rules", "alerts.yml")
	p.promtool("test", "rules", "alerts_test.yml")
	p.promtool("check", "config", "prometheus.yml")
	u.must("glidein", "create", "--site", "local", "--hosts", "2", "--wait", "--timeout", "5m")
	run := u.must("run", u.workflow("fold", u.behind("go", 2, steps(6, 100*time.Millisecond))...), "--detach", "-q")
	u.until("tasks run", 2*time.Minute, func() bool { return u.run(run).Tasks.Running > 0 })
	for _, expr := range expressions(t) {
		var err error
		u.until(expr, time.Minute, func() bool { // rates want two scrapes
			var n int
			n, err = p.ask(expr)
			return err == nil && n > 0
		})
	}
	if n, err := p.ask(`corral_tasks{state="running"} > 0 and on(owner) sum by (owner) (corral_workers) == 2`); err != nil || n != 1 {
		t.Errorf("running tasks and two workers: %d series, %v", n, err)
	}
	u.let("go")
	u.must("runs", "wait", run)
	u.must("glidein", "remove", "1", "--wait")
	u.until("the attempt's end is counted", time.Minute, func() bool {
		n, err := p.ask(`corral_attempts_ended_total{outcome="drained"} == 1 and on(owner) corral_tasks_ended_total{outcome="done"} == 6`)
		return err == nil && n == 1
	})
	u.kill(u.running())
	u.until("the alert is pending", time.Minute, func() bool {
		n, err := p.ask(`ALERTS{alertname="CorralDown"}`)
		return err == nil && n == 1
	})
	u.must("up")
	u.must("down")
}
