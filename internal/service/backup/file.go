package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/node/runas"
)

// Save writes an archive of the corrald with this layout into the named file. It atomically replaces an existing file
// with a complete archive that has been synced to the disk; if Save fails, the old file stays.
func Save(ctx context.Context, l xdg.Layout, name string) (m api.Backup, err error) {
	if err := ours(l.State); err != nil {
		return m, err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(name), ".corral-backup-") // mode 0700, on the file system of the result
	if err != nil {
		return m, corral.ErrorAt(corral.Invalid, "FILE", "%w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	f, err := os.OpenFile(filepath.Join(scratch, "archive"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, err
	}
	m, err = Write(ctx, l, scratch, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return m, fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return m, err
	}
	return m, atomicfile.SyncFolder(filepath.Dir(name))
}

// ours refuses a state directory that belongs to another user, who could control what root reads or writes there.
func ours(state string) error {
	owner, err := runas.Owner(state)
	if err != nil {
		return err
	}
	if owner != "" {
		return corral.ErrorAt(corral.Forbidden, "--state", "%s belongs to %s: run this as that user (sudo -u %s …)",
			state, owner, owner)
	}
	return nil
}
