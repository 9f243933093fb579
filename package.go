package corral

import "time"

// PackageID identifies a worker package in the catalog.
type PackageID int64

// A PackageState specifies whether a package may be installed at sites.
type PackageState string

const (
	PackageReady   PackageState = "READY"
	PackageDeleted PackageState = "DELETED" // tombstone
)

// PackageStates lists all states in their order of life.
var PackageStates = []PackageState{PackageReady, PackageDeleted}

// A Package is a worker package of the catalog, signed with a key that corrald trusts. Its archive is in corrald's own
// mirror, in the listed mirrors, or in both.
type Package struct {
	ID        PackageID    `json:"id"`
	Name      string       `json:"name"` // what-version-arch-os-libc
	Owner     string       `json:"owner"`
	What      string       `json:"what"` // corral-pilot, htcondor
	Version   string       `json:"version"`
	Platform  Platform     `json:"platform"`   // its requirements
	Digest    string       `json:"digest"`     // sha256:HEX of the archive
	SizeBytes int64        `json:"size_bytes"` // of the archive
	Key       string       `json:"key"`        // ed25519:BASE64, the signing key
	Signature string       `json:"signature"`  // base64
	Mirrors   []string     `json:"mirrors"`    // names of the mirrors that list it
	State     PackageState `json:"state"`
	Reason    string       `json:"reason,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}
