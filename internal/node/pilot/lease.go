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

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// leaseDir in a job's directory belongs to the only supervisor that may start workers, and holderFile in it identifies
// that supervisor. Creating a directory is atomic on every file system that nodes share: one process creates it, and
// all others find that it exists.
const leaseDir, holderFile = "lease", "holder.json"

// A holder is the process that holds a lease. Its id identifies it to corrald, and to the hosts on other nodes; the
// other fields are information for people who inspect a site.
type holder struct {
	ID      string    `json:"holder"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	TakenAt time.Time `json:"taken_at"`

	// secret is known only to this process and its workers, in memory; corrald has its digest. It is not in any file.
	secret string
}

// errLeased reports that another supervisor holds or once held the lease. A lease is never returned: a job that a batch
// system starts a second time under the same tag must not start workers again, because the first execution may have
// been declared lost and replaced.
var errLeased = errors.New("another pilot has the attempt's lease")

// takeLease takes the lease of the job in dir. The directory is created before the file with the holder, so a second
// process may find a lease without a holder in between; the lease is taken nevertheless.
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
	return wrap.Errorf(err, "take the lease")
}

// describeHolder describes the holder of a lease, so that users can find the process.
func describeHolder(lease string) string {
	var h holder
	b, err := os.ReadFile(filepath.Join(lease, holderFile))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return "its holder is unknown"
	}
	return fmt.Sprintf("process %d on %s since %s", h.PID, h.Host, h.TakenAt.Format(time.RFC3339))
}

// newHolder returns this process as a holder with a unique id.
func newHolder() holder {
	return holder{
		ID: rand.Text(), Host: hostName(), PID: os.Getpid(), TakenAt: time.Now().UTC(), secret: rand.Text(),
	}
}

// hostName returns the name of this node for reports and leases.
func hostName() string {
	name, _ := os.Hostname()
	return cmp.Or(name, "unknown")
}
