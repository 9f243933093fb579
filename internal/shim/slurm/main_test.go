package slurm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run calls a command in a folder like a shell, and returns its output and its exit status.
func run(folder, stdin string, words ...string) (out, errors string, status int) {
	var stdout, stderr bytes.Buffer
	words[0] = filepath.Join(folder, words[0])
	status = Main(words, Stdio{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), status
}

// Each case is a command line, and its result without a corrald: before a command contacts corrald, it has checked its
// command line.
func TestMainWithoutCorrald(t *testing.T) {
	shim := filepath.Join(t.TempDir(), "shim")
	if _, _, err := Claim(shim, "unix:/nowhere", "mine"); err != nil {
		t.Fatal(err)
	}
	for _, variable := range os.Environ() { // the defaults of who runs the test do not count
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "SBATCH_") || strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "SQUEUE_") {
			t.Setenv(name, value) // restores it
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("SLURM_JOB_ID", "")
	t.Setenv("SLURM_JOB_NODELIST", "n[1-2]")
	incomplete := shim + ": the shim is incomplete: run `corral shim slurm " + shim + "` again"
	me := currentUser().Name
	for _, test := range []struct {
		line, stdin string
		out, errors string // the beginnings of the output
		status      int
	}{
		{line: "squeue --version", out: "slurm-wlm 22.05.8\n"},
		{line: "sinfo -V", out: "slurm-wlm 22.05.8\n"},
		{line: "sbatch -V --wrap=true", out: "slurm-wlm 22.05.8\n"},
		{line: "scontrol -V ping", out: "slurm-wlm 22.05.8\n"},
		{line: "sacct --helpformat -n", out: "Account             AdminComment        AllocCPUS           AllocNodes          \nAllocTRES "},
		{line: "sacct --usage", out: "Usage: sacct [OPTIONS]\n"},
		{line: "sacctmgr -V", out: "slurm-wlm 22.05.8\n"},
		{line: "sacctmgr --help", out: "Usage: sacctmgr [OPTIONS]\n"},
		{line: "sacctmgr", errors: "sacctmgr: error: sacctmgr is not supported", status: 1},
		{line: "sbatch --help", out: "Usage: sbatch [OPTIONS]\n"},
		{line: "squeue --usage", out: "Usage: squeue [OPTIONS]\n"},
		{line: "squeue", errors: "squeue: error: " + incomplete, status: 1},
		{line: "squeue -u " + me, errors: "squeue: error: " + incomplete, status: 1},
		{line: "squeue -u no-such-user", errors: "squeue: error: Invalid user: no-such-user\n\nsqueue: error: ", status: 1},
		{line: "sacct -u no-such-user", errors: "sacct: error: Invalid user id: no-such-user\n", status: 1},
		{line: "sacct -j 1 -u 0", errors: "sacct: error: " + incomplete, status: 1},
		{line: "scancel -u no-such-user", errors: "scancel: error: Invalid user name: no-such-user\n", status: 1},
		{line: "scancel", errors: "scancel: error: No job identification provided\n", status: 1},
		{line: "scancel 1", errors: "scancel: error: " + incomplete, status: 1},
		{line: "sbatch --wrap=true", errors: "sbatch: error: " + incomplete, status: 1},
		{line: "sbatch -Z", errors: "sbatch: invalid option -- 'Z'\nTry \"sbatch --help\"", status: 1},
		{line: "sbatch", stdin: "echo\n", errors: "sbatch: error: This does not look like a batch script.", status: 1},
		{line: "sbatch", stdin: "#!/bin/sh\n#SBATCH -H\n", errors: "sbatch: error: --hold is not supported", status: 1},
		{line: "sbatch", stdin: "#!/bin/sh\n#SBATCH -c 2\n", errors: "sbatch: error: " + incomplete, status: 1},
		{line: "sbatch no-such-file", errors: "sbatch: error: Unable to open file no-such-file\n", status: 1},
		{line: "sinfo -x", errors: "sinfo: invalid option -- 'x'\n", status: 1},
		{line: "srun true", errors: "srun: error: srun outside of a job is not supported", status: 1},
		{line: "srun", errors: "srun: fatal: No command given to execute.\n", status: 1},
		{line: "scontrol show hostnames", out: "n1\nn2\n"},
		{line: "scontrol show hostnames a[08-10],b", out: "a08\na09\na10\nb\n"},
		{line: "scontrol show hostn=a[1-2]", out: "a1\na2\n"},
		{line: "scontrol show hostnames a[2-1]", errors: "scontrol: error: Invalid hostlist: a[2-1]\n", status: 1},
		{line: "scontrol show hostlist a3,a1,a2", out: "a[3,1-2]\n"},
		{line: "scontrol show HOSTLISTSORTED a3,a1,a2", out: "a[1-3]\n"},
		{line: "scontrol show hostlist", errors: "scontrol: error: invalid encode argument\n", status: 1},
		{line: "scontrol show hostlist -", stdin: "a1\na2\n", out: "a[1-2]\n"},
		{line: "scontrol show hostlist /no/such", errors: "scontrol: error: Can not open /no/such\n", status: 1},
		{line: "scontrol show hostlist -", stdin: strings.Repeat("a", maxHostFile+1), errors: "scontrol: error: File - is too large\n", status: 1},
		{line: "scontrol requeue x", errors: "scontrol: error: Invalid job id specified for job x\n", status: 1},
		{line: "sacctmgr -n list user format=user%-32,cluster", out: me},
		{line: "sacctmgr delete user x", errors: "sacctmgr: error: sacctmgr delete user x is not supported", status: 1},
		{line: "qsub x", errors: "qsub: call it by one of the names sacct, sacctmgr, sbatch, scancel, scontrol, sinfo, squeue, srun, as in", status: 1},
	} {
		out, errors, status := run(shim, test.stdin, strings.Fields(test.line)...)
		if !strings.HasPrefix(out, test.out) || !strings.HasPrefix(errors, test.errors) || status != test.status ||
			(out == "") != (test.out == "") || (errors == "") != (test.errors == "") {
			t.Errorf("%s: %q, %q, status %d; want %q, %q, %d", test.line, out, errors, status, test.out, test.errors, test.status)
		}
	}
}

// Outside of a folder no command works, except those that only print a text.
func TestMainOutsideOfAFolder(t *testing.T) {
	t.Setenv("CORRAL_SHIM", "")
	dir := t.TempDir()
	const want = ": error: this command is not in a folder of `corral shim slurm`: put such a folder first on PATH\n"
	for _, line := range []string{"squeue", "sacct", "sinfo", "scancel 1", "sbatch --wrap=true", "scontrol show job 1", "sacctmgr list user"} {
		out, errors, status := run(dir, "", strings.Fields(line)...)
		name, _, _ := strings.Cut(line, " ")
		if out != "" || errors != name+want || status != 1 {
			t.Errorf("%s: %q, %q, status %d", line, out, errors, status)
		}
	}
	if out, _, status := run(dir, "", "squeue", "-V"); out == "" || status != 0 {
		t.Errorf("squeue -V: %q, status %d", out, status)
	}
}

// sbatch finds a script by its path, or else like a command.
func TestScriptOnPATH(t *testing.T) {
	dir := t.TempDir()
	const script = "#!/bin/sh\necho here\n"
	if err := os.WriteFile(filepath.Join(dir, "job-of-this-test"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	c := &call{Stdio: Stdio{In: strings.NewReader("#!/bin/cat\n")}}
	for name, want := range map[string]string{"job-of-this-test": script, filepath.Join(dir, "job-of-this-test"): script, "": "#!/bin/cat\n"} {
		if got, err := c.script(name); got != want || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"./job-of-this-test", "none", dir + "/none"} {
		if got, err := c.script(name); err == nil || err.Error() != "Unable to open file "+name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// Each case is an argument of -M, and the clusters in it that are not the folder's.
func TestElsewhere(t *testing.T) {
	c := &call{folder: Folder{Cluster: "mine"}}
	for list, want := range map[string]string{
		"mine": "", "all": "", "ALL": "", "mine,mine": "", "other": "other", "mine,other": "other", "all,mine": "all", "a,b": "a b", "Mine": "Mine",
	} {
		if got := strings.Join(elsewhere(c, list), " "); got != want {
			t.Errorf("-M %s: %q, want %q", list, got, want)
		}
	}
}

// Users are known by name and by number.
func TestStrangers(t *testing.T) {
	me := currentUser()
	got := strangers([]string{"root", me.Name, "no-such-user", "0", "4000000000"})
	if want := "no-such-user 4000000000"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for flag, got := range map[string]string{"-un": me.Name, "-gn": me.Group} {
		if want, err := exec.Command("id", flag).Output(); err != nil || got != strings.TrimSpace(string(want)) {
			t.Errorf("id %s prints %q, %v; the calling user is %+v", flag, want, err, me)
		}
	}
}
