//go:build sites

package htcondor

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/kit/programs"
	"github.com/corral-pilot/corral/packages"
)

// The tests share the two packages of Debian's HTCondor, and both of them unpacked. They are built by the program that
// users run: with the race detector, compression takes minutes.
var (
	folder   string                          // a private folder that is otherwise empty
	program  string                          // corral
	archive  = map[string]string{}           // :: what → file
	packed   = map[string]packages.Package{} // :: what → package
	unpacked = map[string]string{}           // :: what → folder
	debian   Installation                    // the unpacked one of the pool

	made = sync.OnceValue(makePackages)
)

func TestMain(m *testing.M) {
	status := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// withPackages starts a test that uses the shared packages.
func withPackages(t *testing.T) {
	t.Helper()
	t.Parallel()
	if err := made(); err != nil {
		t.Fatal(err)
	}
}

func makePackages() (err error) {
	if folder, err = os.MkdirTemp("/tmp", "pack-"); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	bin, err := programs.Plain()
	if err != nil {
		return err
	}
	program = filepath.Join(bin, "corral")
	built, err := build("first", "--from-debian", "trixie")
	if err != nil {
		return err
	}
	for _, b := range built {
		archive[b.What], packed[b.What], unpacked[b.What] = b.File, b.Package, filepath.Join(folder, b.What)
		if err := packages.Unpack(b.File, b.Package, unpacked[b.What]); err != nil {
			return err
		}
	}
	debian, err = find(unpacked[Pool])
	return err
}

type archived struct {
	packages.Package
	File string `json:"file"`
}

// build runs corral package build with its archives in a folder of that name.
func build(name string, from ...string) (built []archived, err error) {
	cache, err := downloads()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append([]string{"package", "build", "--no-import", "--out", filepath.Join(folder, name), "-o", "json"}, from...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("corral package build: %w: %s", err, out)
	}
	return built, json.Unmarshal(out, &built)
}

// downloads is the folder that keeps Debian's packages for the next test run, beside the output of scripts/htcondor.
func downloads() (string, error) {
	if os.Getuid() == 0 {
		return "/var/cache/corral-ci", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "corral-ci"), err
}

func TestPackages(t *testing.T) {
	withPackages(t)
	again, err := build("second", "--from-debian", "trixie")
	if err != nil || len(again) != 2 {
		t.Fatalf("%d packages, %v", len(again), err)
	}
	for i, what := range []string{Worker, Pool} {
		p := packed[what]
		if p.What != what || p.Version != debian.Version || p.Platform.OS != "linux" || p.Platform.Arch != Arch() || p.Platform.Libc != packages.Static {
			t.Errorf("%s: %+v", what, p)
		}
		if again[i].Package != p {
			t.Errorf("packed once more it is %+v, want the same %+v", again[i].Package, p)
		}
	}
	// The content that every site receives.
	if size := packed[Worker].SizeBytes; size >= 15_000_000 {
		t.Errorf("the worker's package has %d bytes, want less than 15 MB", size)
	}
}

// unpackAt unpacks a package as the folder dir.
func unpackAt(t *testing.T, what, dir string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := packages.Unpack(archive[what], packed[what], dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPackagesLackNothing(t *testing.T) {
	withPackages(t)
	for _, what := range []string{Worker, Pool} {
		dir := unpacked[what]
		programs := 0
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			f, err := elf.Open(name)
			if err != nil {
				return nil // a script, or the manifest
			}
			defer f.Close()
			needed, err := f.ImportedLibraries()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, library := range needed {
				if _, err := os.Stat(filepath.Join(dir, "lib", library)); err != nil {
					t.Errorf("%s needs %s, which is not in the package", name, library)
				}
			}
			for _, p := range f.Progs {
				if p.Type == elf.PT_INTERP && !strings.HasSuffix(name, ".so.6") {
					programs++
					text, _ := io.ReadAll(p.Open())
					if got, want := string(bytes.TrimRight(text, "\x00")), filepath.Join(dir, "lib", debian.loader); got != want {
						t.Errorf("%s names the loader %s, want %s", name, got, want)
					}
					if paths, err := f.DynString(elf.DT_RPATH); err != nil || len(paths) != 1 || filepath.Join(filepath.Dir(name), strings.TrimPrefix(paths[0], "$ORIGIN")) != filepath.Join(dir, "lib") {
						t.Errorf("%s has rpath %q, %v", name, paths, err)
					}
				} else if paths, _ := f.DynString(elf.DT_RUNPATH); len(paths) > 0 && p.Type == elf.PT_DYNAMIC {
					t.Errorf("%s has runpath %q", name, paths)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if programs < len(workerPrograms) {
			t.Errorf("%s has %d programs", what, programs)
		}
		if v, err := Version(dir); err != nil || v != debian.Version {
			t.Errorf("Version of the unpacked %s = %s, %v, want %s", what, v, err, debian.Version)
		}
	}
}

// In a root folder with only the package and /proc, there is no other loader, library or configuration that programs
// could use.
func TestProgramsRunInAnEmptyRoot(t *testing.T) {
	withPackages(t)
	jail := filepath.Join(folder, "jail")
	dir := unpacked[Worker]
	err := errors.Join(os.CopyFS(filepath.Join(jail, dir), os.DirFS(dir)), os.Mkdir(filepath.Join(jail, "proc"), 0o755),
		os.WriteFile(filepath.Join(jail, "config"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `mount --rbind /proc "$0/proc" && exec chroot "$0" "$1"`, jail, filepath.Join(dir, "bin/condor_version"))
	cmd.Env = []string{"CONDOR_CONFIG=/config", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "$CondorVersion: "+debian.Version) {
		t.Errorf("condor_version in an empty root: %v\n%s", err, out)
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A pool from one package, a worker from the other under the longest permitted path, and a job.
func TestWorkerJoinsPoolAndRunsAJob(t *testing.T) {
	withPackages(t)
	pool, owner := startPool(t, unpacked[Pool])
	deep := filepath.Join(folder, "deep")
	for len(deep) < placeBytes-150 {
		deep = filepath.Join(deep, strings.Repeat("d", 100))
	}
	startWorker(t, pool, owner, unpackAt(t, Worker, deep))
	dir := filepath.Join(folder, "job")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, int(owner.UID), int(owner.GID)); err != nil {
			t.Fatal(err)
		}
	}
	cluster, err := pool.Tools().Submit(soon(t), condor.Submit{
		Executable: "/bin/sh", Dir: dir, Log: filepath.Join(dir, "log"),
		Request:  condor.Request{Cpus: 1, MemoryMiB: 10},
		Transfer: condor.Transfer{When: "YES", Output: []string{}},
		Procs:    []condor.Proc{{Arguments: []string{"-c", "env; ls -l /proc/$PPID/exe"}, Stdout: "out", Stderr: "err"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.File{Path: filepath.Join(dir, "log")}
	eventually(t, fmt.Sprintf("end of job %d", cluster), func() bool {
		for event := range log.New(time.Now()) {
			if end, ok := event.Detail.(eventlog.Terminated); ok {
				if end.ReturnValue != 0 || end.Signal != 0 {
					t.Errorf("the job ended with %+v", end)
				}
				return true
			}
		}
		return false
	})
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil || !strings.Contains(string(out), deep) || strings.Contains(string(out), "LD_LIBRARY_PATH") {
		t.Errorf("the job printed %q, %v, want a starter in %s and no library path of ours", out, err, deep)
	}
}

func startPool(t *testing.T, release string) (*condor.Pool, condor.Account) {
	t.Helper()
	address, err := condor.FreeAddress(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := condor.NewPool(condor.PoolConfig{Dir: filepath.Join(folder, "state"), Release: release, Address: address, RunAs: programs.Unprivileged()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := pool.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := pool.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	owner, err := condor.AccountFor(programs.Unprivileged())
	if err != nil {
		t.Fatal(err)
	}
	return pool, owner
}

func startWorker(t *testing.T, pool *condor.Pool, owner condor.Account, release string) {
	t.Helper()
	token, err := pool.Mint(1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	now, dir := time.Now(), filepath.Join(folder, "glidein")
	collector, err := netip.ParseAddrPort(configured(t, pool, "COLLECTOR_HOST"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := condor.GlideinConfig{
		Dir: dir, Release: release, Name: "unpacked", Identity: token.Identity, Cpus: 1, MemoryMiB: 100,
		Network: condor.GlideinNetwork{Collector: collector, Address: collector.Addr()},
		Times:   condor.GlideinTimes{Retire: now.Add(time.Hour), End: now.Add(time.Hour), Update: time.Second},
	}.Prepare(token.Secret())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(release, "sbin/condor_master"), "-f")
	cmd.Env = []string{"CONDOR_CONFIG=" + config, "HOME=" + owner.Home, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.UID, Gid: owner.GID}
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(name, int(owner.UID), int(owner.GID))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil { // quickly, with its children
			t.Error(err)
		}
		_ = cmd.Wait() // its status reports the signal
	})
}

// configured returns the value of a setting of the pool.
func configured(t *testing.T, pool *condor.Pool, name string) string {
	t.Helper()
	out, err := pool.Tools().Run(soon(t), nil, "condor_config_val", name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for ctx := soon(t); !done(); {
		select {
		case <-ctx.Done():
			t.Fatal("no " + what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// An unpacked package is also an installation, and gives the same programs again.
func TestPackagesOfAnUnpackedPackage(t *testing.T) {
	withPackages(t)
	built, err := build("again", "--from", unpacked[Pool])
	if err != nil || len(built) != 2 || built[0].Name != packed[Worker].Name || built[0].SizeBytes >= 15_000_000 {
		t.Fatalf("package build = %+v, %v, want another %s", built, err, packed[Worker].Name)
	}
	dir := filepath.Join(folder, "of-again")
	if err := packages.Unpack(built[0].File, built[0].Package, dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "bin/condor_version"))
	cmd.Env = []string{"CONDOR_CONFIG=/dev/null"}
	if out, err := cmd.CombinedOutput(); err != nil || !slices.Contains(strings.Fields(string(out)), debian.Version) {
		t.Errorf("condor_version = %s, %v", out, err)
	}
}
