package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

var goodHello = &Hello{
	Version: Version, Role: RoleWorker, Tag: "tag", Token: "secret", ID: "tag/0", Instance: "i",
	Holder: "pilot", CPUs: 1, MemoryMiB: 1, LeftMS: 1000,
}

var slowHello = func() *Hello { h := *goodHello; h.Speed = 0.5; return &h }()

// A worker on slow hosts says so; older workers do not name a speed.
func TestSpeedInAHello(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]corral.Speed{"": 0, `,"speed":0.5`: 0.5, `,"speed":1`: 1, `,"speed":1.5`: -1,
		`,"speed":-0.5`: -1} {
		m, err := decode([]byte(`{"type":"hello","hello":{"version":3,"role":"worker","tag":"tag","token":"t","id":"tag/0",` +
			`"instance":"i","holder":"p","host":"","pid":1,"cpus":1` + text + `}}`))
		if (err != nil) != (want < 0) || err == nil && m.Hello.Speed != want {
			t.Errorf("a hello with %q: %+v, %v", text, m, err)
		}
	}
}

// job is a job with one task that runs a shell command.
func job(seq int64, line string) execution.Job {
	return execution.Job{Run: 1, Seq: seq, Dir: "/d", CPUs: 1, MemoryMiB: 100, Tasks: []execution.Task{{
		ID: "task", Attempt: 1, Argv: []string{"sh", "-c", line}, Estimate: time.Second,
	}}}
}

func TestInvalidCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, certFile), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateCertificate(dir); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("LoadOrCreateCertificate() = %v, want an error that names the file", err)
	}
}

func TestEncodeAssignCutsBatches(t *testing.T) {
	t.Parallel()
	var jobs []*execution.Job
	for seq := range int64(10) {
		j := job(seq, strings.Repeat("x", 300<<10))
		jobs = append(jobs, &j)
	}
	frames, tooLarge := EncodeAssign(jobs)
	if len(tooLarge) != 0 {
		t.Errorf("%d jobs are too large", len(tooLarge))
	}
	var got []execution.Job
	for _, f := range frames {
		if len(f) > maxBatch+1000 {
			t.Errorf("a frame has %d bytes", len(f))
		}
		m, err := decode(f)
		if err != nil || m.Type != TypeAssign {
			t.Fatalf("decode() = %+v, %v", m, err)
		}
		got = append(got, m.Jobs...)
	}
	if len(frames) < 3 {
		t.Errorf("%d frames, want several", len(frames))
	}
	for i, j := range jobs {
		if diff := cmp.Diff(*j, got[i]); diff != "" {
			t.Fatalf("job %d (-sent +got):\n%s", i, diff)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, m := range []Message{
		{Type: TypeHello, Hello: goodHello},
		{Type: TypeHello, Hello: slowHello},
		{Type: TypeWelcome, Welcome: &Welcome{Now: time.Unix(1, 0), LeaseMS: 1, HeartbeatMS: 1}},
		{Type: TypeHeld, Held: []HeldJob{{execution.Key{Run: 1, Seq: 2}, true, 1, 1, 2, 3}}, Results: []Report{{N: 1, Result: execution.Result{Key: execution.Key{Run: 1, Seq: 2}, Attempt: 1, Status: execution.Done}}}},
		{Type: TypeAssign, Jobs: []execution.Job{job(1, "x")}},
		{Type: TypeReturned, Keys: []execution.Key{{Run: 1, Seq: 1}, {Run: 1, Seq: 2}}, Reason: "why"},
		{Type: TypeRefuse, Kind: corral.Conflict, Reason: "no"},
		{Type: TypeCallBack, N: 1, Addresses: []string{"10.0.0.2:40000"}, Nonce: "0123456789abcdef"},
		{Type: TypeCalled, N: 1, Addresses: []string{"10.0.0.2:40000"}},
		{Type: TypeCalled, N: 2, Kind: corral.Failed, Reason: "10.0.0.2:40000: timed out"},
	} {
		body, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Add([]byte{0, 0, 0, 9, '{', '"'})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			frame, err := readFrame(r, nil, MaxHello)
			if err != nil {
				return
			}
			if len(frame) > MaxHello {
				t.Fatalf("a frame of %d bytes was read", len(frame))
			}
			m, err := decode(frame)
			if err != nil {
				continue
			}
			if m.Type == TypeHello && (m.Hello == nil || m.Hello.Tag == "") {
				t.Fatalf("decode accepts %q", frame)
			}
			again, err := json.Marshal(m)
			if err != nil {
				t.Fatalf("what was decoded from %q cannot be encoded: %v", frame, err)
			}
			if _, err := decode(again); err != nil {
				t.Fatalf("%q becomes %q: %v", frame, again, err)
			}
		}
	})
}

func TestReasonsAreOneLine(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"no room": "no room",
		errors.Join(io.EOF, os.ErrClosed).Error(): "EOF; file already closed",
		"said\n":                            "said",
		strings.Repeat("a", maxReasonLen+1): strings.Repeat("a", maxReasonLen),
	} {
		if got := Clip(reason); got != want {
			t.Errorf("clip(%q) = %q, want %q", reason, got, want)
		}
	}
}
