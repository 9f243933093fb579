package fork_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/local"
)

// manyOf starts jobs from sh scripts, by tag.
func manyOf(t *testing.T, conn gridsite.Conn, scripts map[string]string) (f *fork.Batch, tags []string) {
	t.Helper()
	f = fork.New(conn, filepath.Join(t.TempDir(), "a 'root' of \"$HOME\""))
	for tag, script := range scripts {
		if _, err := f.Submit(t.Context(), gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sh", "-c", script}, Hosts: 1, CPUs: 1}); err != nil {
			t.Fatal(err)
		}
		tags = append(tags, tag)
	}
	t.Cleanup(func() {
		if err := f.CancelMany(context.Background(), tags, 0); err != nil {
			t.Error(err)
		}
	})
	return f, tags
}

// untilEnded waits until all of the jobs have ended.
func untilEnded(t *testing.T, f *fork.Batch, tags []string) {
	t.Helper()
	gridsitetest.Until(t, "the jobs to end", func() bool {
		jobs, err := f.Poll(t.Context(), tags)
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for _, j := range jobs {
			if j.Phase == gridsite.Ended {
				ended++
			}
		}
		return ended == len(tags)
	})
}

// One command reads the files of many jobs, with the same result as a Read of each file.
func TestReadMany(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil && shell != "sh" {
			continue
		}
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			c := &countingConn{Conn: withShell(t, path)}
			f, tags := manyOf(t, c, map[string]string{
				"both":    `echo '{"a": 1}' >report.json; printf 'one\ntwo' >&2`,
				"stderr":  `echo "it's \$HOME" >&2`,
				"nothing": `:`,
				"long":    `head -c 200000 /dev/zero | tr '\0' x >report.json; echo tar >>report.json; echo end >&2`,
				"binary":  `head -c 3000 /dev/urandom >report.json`,
			})
			untilEnded(t, f, tags)
			c.runs = 0
			got, err := f.ReadMany(t.Context(), append(tags, "never-was"), []string{"report.json", "stderr", "other"})
			if err != nil || c.runs != 1 {
				t.Fatalf("%v, with %d commands", err, c.runs)
			}
			for _, tag := range tags {
				for _, name := range []string{"report.json", "stderr", "other"} {
					want, err := f.Read(t.Context(), tag, name)
					want = want[max(0, len(want)-gridsite.MaxReadMany):]
					if b, there := got[tag][name]; there != (err == nil) || !bytes.Equal(b, want) {
						t.Errorf("%s of %s: %d bytes, %v; want %d (%v)", name, tag, len(b), there, len(want), err)
					}
				}
			}
			if len(got["never-was"]) != 0 {
				t.Errorf("of a job that never was: %v", got["never-was"])
			}
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := &countingConn{Conn: local.Conn{}}
	scripts := map[string]string{"ended": ":", "deaf": `trap "" TERM; while :; do sleep 1; done`}
	for i := range 10 {
		scripts[fmt.Sprint("job-", i)] = "sleep 300"
	}
	f, tags := manyOf(t, c, scripts)
	untilEnded(t, f, []string{"ended"})
	err := f.ForgetMany(t.Context(), []string{"ended", "deaf", "never-was"})
	var no *gridsite.Refused
	if !errors.As(err, &no) || !strings.Contains(err.Error(), "forgetting deaf: job deaf has not ended") || strings.Contains(err.Error(), "ended:") {
		t.Errorf("forgetting one that has not ended: %v", err)
	}
	c.runs = 0
	if err := f.CancelMany(t.Context(), append(tags, "never-was"), time.Second); err != nil || c.runs != 1 {
		t.Fatalf("cancelling: %v, with %d commands", err, c.runs)
	}
	jobs, err := f.Poll(t.Context(), tags)
	if err != nil || len(jobs) != len(tags)-1 {
		t.Fatalf("%d jobs are known (%v), want all but the one that was forgotten", len(jobs), err)
	}
	for tag, j := range jobs {
		if j.Phase != gridsite.Ended || j.Killed != gridsite.ByCancel {
			t.Errorf("%s: %+v", tag, j)
		}
	}
	if err := f.ForgetMany(t.Context(), tags); err != nil {
		t.Errorf("forgetting: %v", err)
	}
	if jobs, err := f.Poll(t.Context(), tags); err != nil || len(jobs) > 0 {
		t.Errorf("what was forgotten: %v (%v)", jobs, err)
	}
}

func TestManyRefuses(t *testing.T) {
	t.Parallel()
	f := fork.New(local.Conn{}, t.TempDir())
	if _, err := f.ReadMany(t.Context(), []string{"a"}, []string{"$(id)"}); corral.KindOf(err) != corral.Invalid {
		t.Errorf("a name that is not a word: %v", err)
	}
	for what, err := range map[string]error{
		"cancelling": f.CancelMany(t.Context(), []string{"a", "b\nc"}, 0),
		"forgetting": f.ForgetMany(t.Context(), []string{"; id"}),
	} {
		if corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s a tag that is none: %v", what, err)
		}
	}
}

// cutShort is a connection that loses the end of commands' output.
type cutShort struct {
	gridsite.Conn
	keep int
}

func (c cutShort) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	res, err := c.Conn.Run(ctx, cmd)
	res.Stdout = res.Stdout[:min(len(res.Stdout), c.keep)]
	return res, err
}

// A truncated answer is rejected: files missing from it must not count as files that do not exist.
func TestReadManyCutShort(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i, size := range []int{100, 100_000} {
		dir := jobdir.Path(root, fmt.Sprint("job-", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stderr"), bytes.Repeat([]byte("tar\nend\n"), size/8), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conn := local.Conn{}
	tags, names := []string{"job-0", "job-1"}, []string{"stderr"}
	whole, err := fork.New(conn, root).ReadMany(t.Context(), tags, names)
	if err != nil || len(whole) != 2 {
		t.Fatalf("whole: %d, %v", len(whole), err)
	}
	for _, keep := range []int{0, 1, 7, 1000, gridsite.MaxReadMany, gridsite.MaxReadMany + 9, gridsite.MaxReadMany + 13, gridsite.MaxReadMany + 600} {
		got, err := fork.New(cutShort{conn, keep}, root).ReadMany(t.Context(), tags, names)
		if corral.KindOf(err) != corral.Unknown {
			t.Errorf("of the first %d bytes: %d jobs, %v", keep, len(got), err)
		}
	}
}
