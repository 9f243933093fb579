package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// Pilot packages are named pilotPackage and contain the binary at PilotInPackage.
const (
	pilotPackage   = "corral-pilot"
	PilotInPackage = "bin/pilot"
)

// PilotProgram returns the path of the pilot program below a site's root. The error is Invalid if the site has no
// package yet.
func PilotProgram(site corral.Site) (string, error) {
	dir, err := staging.Dir("", packages.Package{Name: site.Package, Digest: site.PackageDigest})
	return path.Join(dir, PilotInPackage), err
}

// BootProgram returns the path below the root of the program for a site's setup and cleanup jobs. It contains the
// digest of the site's package, so that a new release does not overwrite the program of an old one, which a job may
// still be running.
func BootProgram(site corral.Site) string {
	return path.Join("boot", strings.TrimPrefix(site.PackageDigest, "sha256:")[:16], "pilot")
}

// A Depot holds the files that are brought to sites: the worker packages in corrald's own mirror, and the bare pilot
// binaries that run the setup job, which must be at a site before any package. It is filled before it is used
// (AddPilot); after that only its mirror changes.
type Depot struct {
	mirror staging.Mirror
	dir    string            // corrald's copies of the pilot binaries, by digest
	pilots map[string]string // :: digest of a pilot package → path of its binary
	stock  []packages.Signed // built from the binaries that this corrald was given

	signer  packages.Signer
	trusted []packages.PublicKey

	mu sync.Mutex // held while the mirror's index is changed
}

// OpenDepot returns a depot below dir without pilots. It signs the packages that it builds, and trusts its own key
// and the keys in trusted.
func OpenDepot(dir string, signer packages.Signer, trusted ...packages.PublicKey) *Depot {
	return &Depot{
		mirror:  staging.Mirror{Dir: filepath.Join(dir, "mirror")},
		dir:     filepath.Join(dir, "pilots"),
		pilots:  map[string]string{},
		signer:  signer,
		trusted: append([]packages.PublicKey{signer.Public()}, trusted...),
	}
}

// Mirror returns corrald's own mirror.
func (d *Depot) Mirror() staging.Mirror { return d.mirror }

// Sweep removes the temporary files that killed corrald processes left in the mirror. It is called before the depot
// is used.
func (d *Depot) Sweep() error { return d.mirror.Sweep() }

// vouch adds a checked signature to the mirror.
func (d *Depot) vouch(s packages.Signed) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mirror.Vouch(s)
}

// AddPilot builds a worker package from a static pilot binary for machines of arch (as in uname -m). The depot keeps
// its own copy of the binary, because a new build may replace the original while its package is in use. A binary that
// was packed before is not packed again.
func (d *Depot) AddPilot(binary []byte, arch string) error {
	sum := sha256.Sum256(binary)
	dir := filepath.Join(d.dir, version.String(), hex.EncodeToString(sum[:]))
	p, err := d.packed(dir)
	if err != nil {
		p, err = d.pack(dir, binary, arch)
	}
	if err != nil {
		return fmt.Errorf("packing the pilot: %w", err)
	}
	s := d.signer.Sign(p)
	d.pilots[p.Digest] = filepath.Join(dir, "files", PilotInPackage)
	d.stock = append(d.stock, s)
	return d.vouch(s)
}

// packed returns the package that an earlier corrald built from dir's binary.
func (d *Depot) packed(dir string) (p packages.Package, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, err
	}
	name, err := staging.FileName(p)
	if err != nil {
		return p, err
	}
	_, err = os.Stat(filepath.Join(d.mirror.Dir, name))
	return p, err
}

// pack copies the binary below dir, packs it into the mirror, and writes a note with the package beside it. The note
// is written last, so its existence shows that everything else is complete: packed relies on this at the next start.
func (d *Depot) pack(dir string, binary []byte, arch string) (p packages.Package, err error) {
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(filepath.Join(files, filepath.Dir(PilotInPackage)), 0o700); err != nil {
		return p, err
	}
	if err := keep(binary, filepath.Join(files, PilotInPackage), filepath.Join(dir, ".pilot"), 0o700); err != nil {
		return p, err
	}
	p, err = d.mirror.Build(packages.Header{
		What:     pilotPackage,
		Version:  version.String(),
		Platform: corral.Platform{OS: "linux", Arch: arch, Libc: packages.Static},
	}, os.DirFS(files))
	if err != nil {
		return p, err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return p, err // unreachable: all fields of a Package can be encoded as JSON
	}
	return p, keep(b, filepath.Join(dir, "package.json"), filepath.Join(dir, ".package"), 0o600)
}

// keep writes a file atomically by way of tmp.
func keep(b []byte, path, tmp string, mode fs.FileMode) error {
	if err := os.WriteFile(tmp, b, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// binary opens the pilot binary of package p. If this corrald did not pack it, the archive in the mirror is unpacked
// first.
func (d *Depot) binary(p packages.Package) (*os.File, error) {
	if name, ok := d.pilots[p.Digest]; ok {
		return os.Open(name)
	}
	digits, err := packages.HexOf(p.Digest)
	if err != nil {
		return nil, err
	}
	archive, err := d.mirror.Path(p)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(d.dir, "unpacked", digits)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := packages.Unpack(archive, p, dir); err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(dir, PilotInPackage))
}
