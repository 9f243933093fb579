package pilot

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// leaseDir in a job's directory belongs to the one supervisor that may start workers, and holderFile in it says which
// one that is. Making a directory is atomic on every file system that nodes share: one process makes it, all others
// find it.
const leaseDir, holderFile = "lease", "holder.json"

// A holder is the process that has a lease. Its id names it to corrald, and to the hosts on other nodes; the rest is
// for people who look at a site.
type holder struct {
	ID      string    `json:"holder"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	TakenAt time.Time `json:"taken_at"`

	// secret is known to this process and its workers only, in memory; corrald has its digest. It is in no file.
	secret string
}

// errLeased says that another supervisor has the lease, or had it once. A lease is never given back: a job that a batch
// system starts a second time under the same tag must not start workers again, since its first life may have been
// declared lost and replaced.
var errLeased = errors.New("another pilot has the attempt's lease")

// takeLease takes the lease of the job whose directory is dir. The directory is made before the file in it says whose
// it is, so that whoever comes second between the two finds a lease without a name, which counts the same.
func takeLease(dir string, h holder) error {
	lease := filepath.Join(dir, leaseDir)
	err := os.Mkdir(lease, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", errLeased, describeHolder(lease))
	}
	if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	b, err := json.Marshal(h)
	if err == nil {
		err = os.WriteFile(filepath.Join(lease, holderFile), b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	return nil
}

// describeHolder says for people who has a lease: where to look for the process that is in the way.
func describeHolder(lease string) string {
	var h holder
	b, err := os.ReadFile(filepath.Join(lease, holderFile))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return "its holder has not said who it is"
	}
	return fmt.Sprintf("process %d on %s since %s", h.PID, h.Host, h.TakenAt.Format(time.RFC3339))
}

// newHolder makes this process a holder with an id that no other has.
func newHolder() holder {
	return holder{
		ID: rand.Text(), Host: hostName(), PID: os.Getpid(), TakenAt: time.Now().UTC(), secret: rand.Text(),
	}
}

// hostName names this node in reports and leases.
func hostName() string {
	name, _ := os.Hostname()
	return cmp.Or(name, "unknown")
}
