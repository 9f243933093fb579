//go:build sites

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// TestFullQuota has a site whose quota is full, at its setup and then when pilots are to start. The file system has room.
//
// testdata/quota.tar.gz holds a btrfs of 256 MiB, as mkfs.btrfs --mixed makes it, with its quotas enabled and one of
// 40 MiB set for all that is in it: of the kernel that these tests know it has no others.
func TestFullQuota(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root may mount a file system")
		return
	}
	u := newUser(t)
	disk := u.mountQuota()
	if disk == "" {
		t.Log("this kernel has no btrfs")
		return
	}
	root := disk + "/root"
	u.must("up")
	create := []string{"site", "create", "full", "--contact", "local:", "--batch", "fork", "--root", root, "--wait", "--timeout", "5m"}
	u.fill(disk, 1<<20)
	u.wantNo(1, []string{root + " has no room for the pilot binary", "quota exceeded"}, create...)
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("something is at %s: %v", root, err)
	}
	u.must("site", "remove", "full", "--wait", "--timeout", "5m")

	u.free(disk)
	u.must(create...)
	size := u.size(root)
	u.must("site", "remove", "full", "--wait", "--timeout", "5m")
	u.fill(disk, size/4*3) // enough for the pilot binary, and not for the package
	u.wantNo(1, []string{"setup job 1 failed", "unpacking", "quota exceeded"}, create...)
	u.must("site", "remove", "full", "--wait", "--timeout", "5m")

	u.free(disk)
	u.must(create...)
	u.fill(disk, 0)
	id := u.must("glidein", "create", "--site", "full", "-q")
	u.until("the glidein says so", time.Minute, func() bool {
		g := u.glidein(id)
		return len(g.Attempts) > 0 && strings.Contains(g.Attempts[0].Reason, "the site refused it") && strings.Contains(g.Attempts[0].Reason, "quota exceeded")
	})
	if history := u.must("glidein", "history", id); !strings.Contains(history, "quota exceeded") {
		t.Errorf("its history does not:\n%s", history)
	}
	u.must("glidein", "remove", id, "--wait", "--timeout", "5m")
	u.must("site", "remove", "full", "--wait", "--timeout", "5m")
	if left, err := os.ReadDir(disk); err != nil || len(left) != 1 {
		t.Errorf("left there beside what is not ours: %v, %v", left, err)
	}
	u.must("down")
}

// size is how many bytes the files in a directory have.
func (u *user) size(dir string) (sum int64) {
	u.t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return sum
}

// free ends what fill did.
func (u *user) free(disk string) {
	u.t.Helper()
	if err := os.Remove(disk + "/others"); err != nil {
		u.t.Fatal(err)
	}
	syncfs(u.t, disk)
}

// mountQuota mounts a file system with a quota, unless the kernel cannot.
func (u *user) mountQuota() (disk string) {
	u.t.Helper()
	disk = u.dir + "/disk"
	image := filepath.Join(u.dir, "quota.img")
	sh := func(name string, args ...string) {
		u.t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			u.t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
	}
	sh("tar", "-xzf", "testdata/quota.tar.gz", "-C", u.dir)
	if err := os.Mkdir(disk, 0o700); err != nil {
		u.t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "btrfs", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "unknown filesystem type") {
			return ""
		}
		u.t.Fatalf("mount: %v: %s", err, out)
	}
	u.t.Cleanup(func() { sh("umount", disk) })
	return disk
}

// fill writes to a file until only so much is left of the quota.
func (u *user) fill(disk string, left int64) {
	u.t.Helper()
	reserve := disk + "/reserve"
	if err := os.WriteFile(reserve, make([]byte, left), 0o600); err != nil {
		u.t.Fatal(err)
	}
	f, err := os.OpenFile(disk+"/others", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		u.t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []int{1 << 16, 1 << 12} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, n))
		}
		if !errors.Is(err, syscall.EDQUOT) {
			u.t.Fatalf("filling the quota: %v", err)
		}
	}
	if err := os.Remove(reserve); err != nil {
		u.t.Fatal(err)
	}
	syncfs(u.t, disk)
}

// syncfs has the file system count what was freed.
func syncfs(t testing.TB, disk string) {
	t.Helper()
	if out, err := exec.Command("sync", "-f", disk).CombinedOutput(); err != nil {
		t.Fatalf("sync: %v: %s", err, out)
	}
}

// A root without room is refused before anything is put there.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root may mount a file system that is small")
		return
	}
	u := newUser(t)
	disk := u.dir + "/disk"
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	u.must("up")
	u.wantNo(3, []string{"root", "only 2 MiB of disk or quota are free at " + disk}, "site", "create", "small", "--contact", "local:", "--batch", "fork", "--root", disk+"/root")
	if left, err := os.ReadDir(disk); err != nil || len(left) != 0 {
		t.Errorf("left there: %v, %v", left, err)
	}
	if sites := read[[]corral.Site](u, "site", "list", "--all"); len(sites) != 1 {
		t.Errorf("the sites are %v", sites)
	}
	u.must("down")
}
