package store_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// crashEnv makes this test binary the writer of the crash test. Its value is the path of the database.
const crashEnv = "CORRAL_STORE_CRASH"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(path, os.Stdout))
		os.Exit(1)
	}
	if err := flag.Set("rapid.checks", "15"); err != nil { // a default; a flag on the command line overrides it
		panic(err)
	}
	os.Exit(m.Run())
}

// An ack is one line of the writer's output: a Write has returned, with these changes.
type ack struct {
	object string
	id     int64
	event  string
	state  string
}

func (a ack) print(w io.Writer) error {
	_, err := fmt.Fprintln(w, a.object, a.id, a.event, a.state)
	return err
}

// writeUntilKilled creates sites, glideins and jobs, moves them through their lives, and prints an ack after each
// Write. It returns only if something fails.
func writeUntilKilled(path string, out io.Writer) error {
	ctx := context.Background()
	db, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	write := func(fn func(*store.Tx) (ack, error)) (id int64) {
		var done ack
		if err == nil {
			err = storetest.All(db).Write(ctx, actor, func(tx *store.Tx) (err error) { done, err = fn(tx); return err })
		}
		if err == nil {
			err = done.print(out)
		}
		return done.id
	}
	for n := 0; err == nil; n++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), n)
		site := corral.SiteID(write(func(tx *store.Tx) (ack, error) {
			s, err := tx.CreateSite(newSite(name))
			return ack{corral.ObjectSite, int64(s.ID), "create", "NEW"}, err
		}))
		write(moveSite(site, corral.SiteStage, "STAGING"))
		write(moveSite(site, corral.SiteStaged, "READY"))
		for range 3 {
			writeGlidein(site, name, write)
		}
	}
	return err
}

func moveSite(id corral.SiteID, move corral.SiteMove, state string) func(*store.Tx) (ack, error) {
	return func(tx *store.Tx) (ack, error) {
		_, err := tx.MoveSite(id, move, "")
		return ack{corral.ObjectSite, int64(id), string(move), state}, err
	}
}

// writeGlidein takes one glidein with one attempt from creation to end.
func writeGlidein(site corral.SiteID, name string, write func(func(*store.Tx) (ack, error)) int64) {
	id := corral.GlideinID(write(func(tx *store.Tx) (ack, error) {
		c, err := tx.CreateCluster(corral.Cluster{Name: fmt.Sprint(name, "-", tags.Add(1)), Owner: actor, Kind: corral.Embedded})
		if err != nil {
			return ack{}, err
		}
		g, err := tx.CreateGlidein(corral.Glidein{Owner: actor, Site: site, Cluster: c.ID,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}})
		return ack{corral.ObjectGlidein, int64(g.ID), "derive", "WAITING"}, err
	}))
	job := corral.JobID(write(func(tx *store.Tx) (ack, error) {
		j, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: site, Glidein: id, Tag: fmt.Sprint(name, "-", id)})
		return ack{corral.ObjectJob, int64(j.ID), "create", "NEW"}, err
	}))
	for _, e := range []corral.JobEvent{submitted, started, ended(corral.OutcomeIdle)} {
		write(func(tx *store.Tx) (ack, error) {
			j, err := tx.MoveJob(job, e)
			return ack{corral.ObjectJob, int64(job), string(e.Move), string(j.State)}, err
		})
	}
	write(func(tx *store.Tx) (ack, error) {
		g, err := tx.AskGlidein(id, corral.AskDrain, "")
		return ack{corral.ObjectGlidein, int64(id), "derive", string(g.State)}, err
	})
}

// After a kill at any instant, even during the first migration, the database can be opened, is intact, and contains
// every acknowledged write: 5 databases, 10 kills each.
func TestKilledAtAnyInstant(t *testing.T) {
	t.Parallel()
	for lane := range 5 {
		t.Run(fmt.Sprint("database ", lane), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "corral.db")
			total := 0
			for kill := range 10 {
				after := rand.IntN(8) // acknowledged writes: a measure of time that does not depend on the machine's speed
				acks := killWriter(t, path, after, rand.N(5*time.Millisecond))
				total += len(acks)
				if checkCrashed(t, path, acks); t.Failed() {
					t.Fatalf("after kill %d, %d writes after the start", kill, after)
				}
			}
			if total < 10 {
				t.Errorf("only %d acknowledged writes: the test shows little", total)
			}
		})
	}
}

// killWriter starts a writer and kills it a moment after a number of acknowledged writes. It returns all
// acknowledgements.
func killWriter(t *testing.T, path string, after int, moment time.Duration) (acks []ack) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { time.AfterFunc(moment, func() { cmd.Process.Kill() }) }
	if after == 0 {
		kill() // perhaps before it has opened the database
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var a ack
		if n, _ := fmt.Sscan(lines.Text(), &a.object, &a.id, &a.event, &a.state); n == 4 {
			acks = append(acks, a)
		}
		if len(acks) == after {
			kill()
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return acks
}

func checkCrashed(t *testing.T, path string, acks []ack) {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	file := raw(t, path)
	checkIntegrity(t, file)
	checkHistory(t, file)
	err = storetest.All(db).View(t.Context(), func(tx *store.Tx) error {
		for _, a := range acks {
			entries, err := tx.History(a.object, a.id, store.Page{})
			if err != nil {
				return err
			}
			if !contains(entries, a) {
				t.Errorf("lost: %v", a)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func contains(entries []corral.Entry, a ack) bool {
	for _, e := range entries {
		if e.Event == a.event && e.To == a.state {
			return true
		}
	}
	return false
}
