// Package jobfiles defines the two files through which corrald and its jobs at a site communicate when there is no
// connection between them: the order that a setup, pilot or cleanup job finds in its directory, and the report that it
// leaves there.
//
// An order for a pilot contains the attempt's token, so it is a private file and never an argument or an environment
// variable. The token admits one pilot; the secret of its workers is not in any file. A job without a report did not
// end in an orderly way.
package jobfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Names of files in a job's directory.
const (
	File       = "order.json"
	ReportFile = "report.json"
	PoolToken  = "pool.token" // admits workers to an HTCondor pool; replaced while the job is queued
)

// An Order specifies a job's work. Exactly one of Setup, Pilot and Cleanup is set.
type Order struct {
	Tag     string      `json:"tag"`
	Root    string      `json:"root"` // directory at the site used by corrald alone
	Setup   *Setup      `json:"setup,omitempty"`
	Pilot   *PilotOrder `json:"pilot,omitempty"`
	Cleanup *Cleanup    `json:"cleanup,omitempty"`
}

// Setup requests one worker package. The setup job refuses the package, and names it, before it contacts any mirror,
// unless the package was signed with one of the trusted keys.
type Setup struct {
	Package    string          `json:"package"` // full name
	What       string          `json:"what"`
	Version    string          `json:"version"`
	Platform   corral.Platform `json:"platform"`
	Digest     string          `json:"digest"` // sha256:HEX of the archive
	SizeBytes  int64           `json:"size_bytes"`
	Key        string          `json:"key"`
	Signature  string          `json:"signature"`
	Trusted    []string        `json:"trusted"`                     // keys, ed25519:BASE64
	Sources    []Source        `json:"sources"`                     // in the order to try
	CacheBytes int64           `json:"cache_limit_bytes,omitempty"` // of the packages at the site; 0: no limit
	// Keep lists the digests of other packages that pilots need, which are kept regardless of the limit.
	Keep []string `json:"keep,omitempty"`
}

// A Source is a location from which the package can probably be downloaded.
type Source struct {
	Mirror corral.MirrorID `json:"mirror_id,omitempty"` // 0: corrald itself
	URL    string          `json:"url"`                 // http, https or file
}

// A Try is the result of one source; tries are listed in order.
type Try struct {
	Mirror  corral.MirrorID `json:"mirror_id,omitempty"`
	OK      bool            `json:"ok"`
	Reached bool            `json:"reached"` // a server answered
	Bytes   int64           `json:"bytes"`
	Took    corral.Seconds  `json:"took_s"`
	Line    string          `json:"line"` // for display: the source and the result
}

// A PilotOrder requests workers.
type PilotOrder struct {
	Token string `json:"token"`
	// Addresses are unix:PATH, tls:HOST:PORT or relay:HOST:PORT, in the order to try.
	Addresses  []string `json:"addresses"`
	CertDigest string   `json:"cert_digest,omitempty"` // sha256:HEX of the worker port's certificate
	// A host is a worker: one on each of the batch job's nodes, or all on this machine.
	corral.Shape
	Speed   corral.Speed   `json:"speed,omitempty"`      // of the hosts
	Idle    corral.Seconds `json:"idle_s,omitempty"`     // 0: never leave because of idleness
	MinStay corral.Seconds `json:"min_stay_s,omitempty"` // run this long before leaving because of idleness
	Condor  *Condor        `json:"condor,omitempty"`     // workers join an HTCondor pool; nil: corrald's own
}

// Attached reports whether the pilot's workers join a pool that corrald does not run.
func (p *PilotOrder) Attached() bool { return p != nil && p.Condor != nil && p.Condor.Attached }

// Package returns the digest of the HTCondor package that the pilot's workers start; ok is false if they need none.
func (p *PilotOrder) Package() (digest string, ok bool) {
	if p == nil || p.Condor == nil {
		return "", false
	}
	return p.Condor.Digest, true
}

// Condor contains the settings for workers of an HTCondor pool, in addition to the token in the file PoolToken.
type Condor struct {
	Package   string            `json:"package"`   // the HTCondor package's full name
	Digest    string            `json:"digest"`    // its digest; a setup job has installed it
	Collector string            `json:"collector"` // HOST:PORT
	Broker    corral.BrokerMode `json:"broker"`
	CCB       []string          `json:"ccb,omitempty"`     // HOST:PORT; none: the collector
	Relays    []string          `json:"relays,omitempty"`  // HOST:PORT of the site's relay; empty without a relay
	Schedd    string            `json:"schedd,omitempty"`  // HOST:PORT; empty: behind the collector's port
	Streams   bool              `json:"streams,omitempty"` // the pool's brokers forward streams
	// Attached means that corrald does not run the pool, whose schedd may be on another machine.
	Attached bool             `json:"attached,omitempty"`
	Static   bool             `json:"static,omitempty"`
	Cluster  string           `json:"cluster"` // name of the cluster, for the workers' ads
	Site     string           `json:"site"`
	Glidein  corral.GlideinID `json:"glidein_id"`
	Attempt  corral.JobID     `json:"attempt_id"`
}

// Cleanup requests the removal of everything below Root except the job's own directory.
type Cleanup struct{}

// A Report describes how a job ended, independently of exit statuses, which batch systems lose.
type Report struct {
	Outcome   corral.Outcome    `json:"outcome"`
	Transient bool              `json:"transient,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Lost      []corral.LostHost `json:"lost_hosts,omitempty"` // for a pilot: hosts without which it failed or continued
	StartedAt time.Time         `json:"started_at"`
	EndedAt   time.Time         `json:"ended_at"`
	Tries     []Try             `json:"tries,omitempty"` // for a setup job: the sources that were tried
	// Missing is, for a pilot, the digest of the package that it did not find installed.
	Missing string   `json:"missing,omitempty"`
	Log     []string `json:"log,omitempty"` // further messages, one line each
}

// Read reads the order in dir and checks that it is complete.
func Read(dir string) (Order, error) {
	b, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return Order{}, fmt.Errorf("read order: %w", err)
	}
	return Decode(b)
}

// Decode decodes an order, refusing unknown fields.
func Decode(b []byte) (Order, error) {
	var o Order
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return Order{}, fmt.Errorf("read order: %w", err)
	}
	kinds := 0
	for _, set := range []bool{o.Setup != nil, o.Pilot != nil, o.Cleanup != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 || o.Tag == "" || !filepath.IsAbs(o.Root) {
		return Order{}, fmt.Errorf("read order: want a tag, an absolute root and one of setup, pilot, cleanup")
	}
	return o, nil
}

// Refuse returns the report of a job that was started with an order for another kind of job.
func (o Order) Refuse(want string) Report {
	return Report{Outcome: corral.OutcomeFailed, Reason: fmt.Sprintf("the order of %s is not for a %s", o.Tag, want)}
}

// Encode encodes an order.
func (o Order) Encode() ([]byte, error) { return json.MarshalIndent(o, "", "  ") }

// WriteReport writes r to dir, atomically.
func WriteReport(dir string, r Report) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err // unreachable: all values of a Report can be encoded
	}
	return wrap.Errorf(atomicfile.Replace(filepath.Join(dir, ReportFile), b, 0o600), "write report")
}

// MaxReason limits the length of a report's reason, in bytes; a longer reason is truncated.
const MaxReason = 1000

// DecodeReport decodes a report and refuses one with an unknown outcome. It puts the reason on one line.
func DecodeReport(b []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return Report{}, fmt.Errorf("read report: %w", err)
	}
	if !slices.Contains(corral.Outcomes, r.Outcome) {
		return Report{}, fmt.Errorf("read report: %.40q is not an outcome", r.Outcome)
	}
	r.Reason = OneLine(r.Reason)
	return r, nil
}

// OneLine puts a reason on one line of at most MaxReason bytes.
func OneLine(reason string) string {
	reason = strings.Join(strings.Fields(reason), " ")
	if len(reason) > MaxReason {
		reason = strings.ToValidUTF8(reason[:MaxReason], "")
	}
	return reason
}

// Reserve is the final part of a walltime that a pilot reserves for an orderly end, so that the batch system never has
// to end it: a twentieth, at least 2 s and at most 1 minute.
func Reserve(walltime time.Duration) time.Duration {
	return min(time.Minute, max(2*time.Second, walltime/20))
}

// Lasting returns a walltime that is at least as long as d without its Reserve.
func Lasting(d time.Duration) time.Duration {
	return d + min(time.Minute, max(2*time.Second, (d+18)/19)) // a twentieth of the sum is a nineteenth of d
}
