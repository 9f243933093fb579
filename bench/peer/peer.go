// Package peer contains programs for running many short tasks, for benchmarks that compare them with Corral. They are
// installed by scripts/peers; each runs the same no-op tasks, two at a time.
package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Peer is a program that runs no-op tasks.
type Peer struct {
	Name  string
	Share int // divisor for the number of tasks: a slow program needs only few for a measurement

	files map[string]string // in its directory; %TASKS is the number of tasks, %RULES the results of rule
	rule  func(i int) string
	sh    string // runs them all; a number that it prints is its duration in seconds
}

// All returns commonly compared programs. Makeflow and Snakemake are driven by files: each of their tasks creates one.
func All() []Peer {
	makeRule := func(i int) string { return fmt.Sprintf("o%d:\n\t/bin/true >o%d\n\n", i, i) }
	return []Peer{
		{Name: "xargs -P2 -n1", sh: `seq %TASKS | xargs -P2 -n1 /bin/true`, Share: 1},
		{Name: "GNU parallel -j2", sh: `seq %TASKS | parallel --will-cite -j2 /bin/true '#'`, Share: 5},
		{Name: "Makeflow, local", files: map[string]string{"Makeflow": "%RULES"}, rule: makeRule, Share: 5,
			sh: `makeflow -T local -j 2 Makeflow >log`},
		{Name: "Makeflow, Work Queue", files: map[string]string{"Makeflow": "%RULES"}, rule: makeRule, Share: 5,
			sh: workQueue},
		{Name: "dask.distributed", files: map[string]string{"tasks.py": daskTasks}, Share: 5,
			sh: `python3 tasks.py 2>log`},
		{Name: "Snakemake --cores 2", files: map[string]string{"Snakefile": snakefile}, Share: 50,
			sh: `snakemake --cores 2 --quiet all 2>log`},
	}
}

const (
	// A Work Queue listens on all addresses, so it has a separate network. Its workers wait for more work when all is
	// done.
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

// SetUp makes Run find the programs of scripts/peers. It must be called in the project's folder.
func SetUp(ctx context.Context) error {
	folder, err := exec.CommandContext(ctx, "scripts/peers").Output()
	if err != nil {
		return fmt.Errorf("scripts/peers, which must be run in the project's folder: %w", err)
	}
	return os.Setenv("PATH", filepath.Join(strings.TrimSpace(string(folder)), "bin")+":"+os.Getenv("PATH"))
}

// Run runs the given number of tasks in a new directory below another, and returns how long they took: from the start
// of the command to its end, unless the peer prints a better value. The programs that it needs must be in PATH.
func (p Peer) Run(ctx context.Context, below string, tasks int) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(below, "peer-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	var rules strings.Builder
	for i := 0; p.rule != nil && i < tasks; i++ {
		rules.WriteString(p.rule(i))
	}
	filled := strings.NewReplacer("%TASKS", strconv.Itoa(tasks), "%RULES", rules.String())
	for name, text := range p.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(filled.Replace(text)), 0o666); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", filled.Replace(p.sh))
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true} // as pilots have their own sessions
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+dir)
	began := time.Now()
	out, err := cmd.Output()
	took = time.Since(began)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return 0, fmt.Errorf("%s: %w: %.500s", p.Name, err, log)
	}
	if seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err == nil {
		took = time.Duration(seconds * float64(time.Second))
	}
	return took, p.check(dir, tasks)
}

// check checks that each task of a file-driven program has created its file.
func (p Peer) check(dir string, tasks int) error {
	if len(p.files) == 0 || p.files["tasks.py"] != "" {
		return nil
	}
	for i := range tasks {
		if _, err := os.Stat(filepath.Join(dir, "o"+strconv.Itoa(i))); err != nil {
			return fmt.Errorf("%s did not do all tasks: %w", p.Name, err)
		}
	}
	return nil
}
