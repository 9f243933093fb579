package main

// What others run many short tasks with, beside Corral: the same no-op tasks, two side by side, on the same disk. The
// programs are those of scripts/peers. Sides take turns as in all other measurements, and are measured as their users
// wait for them: from the command, or the request, to its end, with reading the workflow and all that is written down.
// What serves more than one workflow, such as pilots, or the workers of Dask, has been started before.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/personal"
)

// A peer is a program that runs no-op tasks.
type peer struct {
	name  string
	files map[string]string // of its directory; each %TASKS is the number of tasks, and each %RULES what rule gives
	rule  func(i int) string
	sh    string // what runs them all; where it prints a number, these are its seconds
	share int    // it gets one of so many of the tasks: a slow one is measured long enough with few
}

// peers are those that have been asked for. Makeflow and Snakemake are driven by files: a task of theirs leaves one.
func peers() []peer {
	makeRule := func(i int) string { return fmt.Sprintf("o%d:\n\t/bin/true >o%d\n\n", i, i) }
	return []peer{
		{name: "xargs -P2 -n1", sh: `seq %TASKS | xargs -P2 -n1 /bin/true`, share: 1},
		{name: "GNU parallel -j2", sh: `seq %TASKS | parallel --will-cite -j2 /bin/true '#'`, share: 5},
		{name: "Makeflow, local", files: map[string]string{"Makeflow": "%RULES"}, rule: makeRule, share: 5,
			sh: `makeflow -T local -j 2 Makeflow >log`},
		{name: "Makeflow, Work Queue", files: map[string]string{"Makeflow": "%RULES"}, rule: makeRule, share: 5,
			sh: workQueue},
		{name: "dask.distributed", files: map[string]string{"tasks.py": daskTasks}, share: 5, sh: `python3 tasks.py 2>log`},
		{name: "Snakemake --cores 2", files: map[string]string{"Snakefile": snakefile}, share: 50,
			sh: `snakemake --cores 2 --quiet all 2>log`},
	}
}

const (
	// A Work Queue listens everywhere, so it has a network of its own. Its workers wait for more work when all is done.
	workQueue = `exec unshare --net --map-root-user sh -ec '
ip link set lo up
began=$(date +%s.%N)
for i in 1 2; do
	until [ -s port ]; do sleep 0.01; done &&
	exec work_queue_worker --cores 1 --memory 100 --disk 100 -s . 127.0.0.1 "$(cat port)" >worker$i 2>&1 &
	workers="$workers $!"
done
makeflow -T wq -p 0 -Z port Makeflow >log
ended=$(date +%s.%N)
kill $workers
wait
echo "$ended $began" | awk "{ print \$1 - \$2 }"'`

	daskTasks = `import subprocess, time
from distributed import Client, LocalCluster

def task(i):
    return subprocess.run(["/bin/true"]).returncode

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        with Client(cluster) as client:
            client.gather(client.map(task, range(100), pure=False))
            began = time.monotonic()
            failed = sum(client.gather(client.map(task, range(%TASKS), pure=False)))
            took = time.monotonic() - began
    assert failed == 0
    print(took)
`

	snakefile = `rule all:
    input: expand("o{i}", i=range(%TASKS))

rule task:
    output: "o{i}"
    shell: "/bin/true >{output}"
`
)

// run runs so many tasks in a new directory.
func (p peer) run(ctx context.Context, below string, tasks int) (s sample, err error) {
	dir, err := os.MkdirTemp(below, "peer-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	var rules strings.Builder
	for i := 0; p.rule != nil && i < tasks; i++ {
		rules.WriteString(p.rule(i))
	}
	filled := strings.NewReplacer("%TASKS", strconv.Itoa(tasks), "%RULES", rules.String())
	for name, text := range p.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(filled.Replace(text)), 0o666); err != nil {
			return s, err
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", filled.Replace(p.sh))
	cmd.Dir, cmd.SysProcAttr = dir, ownSession
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+dir)
	began := time.Now()
	out, err := cmd.Output()
	s = sample{tasks: tasks, span: time.Since(began)}
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return s, fmt.Errorf("%s: %w: %.500s", p.name, err, log)
	}
	if seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err == nil {
		s.span = time.Duration(seconds * float64(time.Second))
	}
	return s, p.check(dir, tasks)
}

// check sees that each task of what is driven by files has left its file.
func (p peer) check(dir string, tasks int) error {
	if len(p.files) == 0 || p.files["tasks.py"] != "" {
		return nil
	}
	for i := range tasks {
		if _, err := os.Stat(filepath.Join(dir, "o"+strconv.Itoa(i))); err != nil {
			return fmt.Errorf("%s did not do all tasks: %w", p.name, err)
		}
	}
	return nil
}

// measurePeers measures Corral and its peers in turn, and publishes it.
func (p plan) measurePeers(ctx context.Context, dir string) (err error) {
	if err := personal.UsePrograms(p.bin); err != nil {
		return err
	}
	folder, err := exec.CommandContext(ctx, "scripts/peers").Output()
	if err != nil {
		return fmt.Errorf("scripts/peers, which is run in the project's folder: %w", err)
	}
	bin := filepath.Join(strings.TrimSpace(string(folder)), "bin")
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	m := thisMachine(dir)
	s, err := newStand(ctx, filepath.Join(dir, "s"))
	defer func() { err = errors.Join(err, s.takeDown()) }()
	if err != nil {
		return err
	}
	if err := s.provision(ctx, width); err != nil {
		return err
	}
	names, measured, err := rig{p, dir, s}.besidePeers(ctx)
	if err != nil {
		return err
	}
	return p.publish(m, "\n\n"+peersTable(names, measured))
}

// besidePeers takes the turns: Corral, Corral that keeps the directories of all tasks, the bare loop, and each peer.
func (r rig) besidePeers(ctx context.Context) (names []string, measured [][]sample, err error) {
	most, err := r.warmUp(ctx)
	if err != nil {
		return nil, nil, err
	}
	document, err := independent(most)
	if err != nil {
		return nil, nil, err
	}
	names = []string{"corral", "corral, --keep-tasks", "bare loop"}
	sides := []side{
		timed(r.through(ctx, document, most, corral.RunOptions{})),
		timed(r.through(ctx, document, most, corral.RunOptions{KeepTasks: true})), r.bare(ctx, most, width),
	}
	for _, p := range peers() {
		names = append(names, p.name)
		sides = append(sides, func() (sample, error) { return p.run(ctx, r.dir, max(1, most/p.share)) })
	}
	measured, err = turns(func(m [][]sample) bool {
		if done := len(m[0]); done > 0 {
			r.say("round %d, tasks/s of %s: %s", done, strings.Join(names, ", "), lastRound(m))
		}
		return len(m[0]) < r.rounds
	}, sides...)
	return names, measured, err
}

// timed measures a side from the outside.
func timed(of side) side {
	return func() (sample, error) {
		began := time.Now()
		s, err := of()
		s.span = time.Since(began)
		return s, err
	}
}

// peersTable is the report; the first side is compared with all others.
func peersTable(names []string, measured [][]sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "No-op tasks (/bin/true), %d wide, %d rounds, from the command to its end:\n\n",
		width, len(measured[0]))
	rows := [][]string{{"", "tasks", "tasks/s, median", "range", "corral ÷ it", "range"}}
	for i, name := range names {
		row := append([]string{name, strconv.Itoa(measured[i][0].tasks)}, rates(measured[i]).row("%.0f")...)
		rows = append(rows, append(row, ratios(measured[0], measured[i]).row("%.2f")...))
	}
	table(&b, rows)
	return b.String()
}
