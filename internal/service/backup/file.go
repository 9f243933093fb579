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

// Save writes an archive of the corrald with this layout into the file at name. What was there before is replaced at
// once, by a whole archive that is on the disk; if Save fails it stays.
func Save(ctx context.Context, l xdg.Layout, name string) (m api.Backup, err error) {
	if err := ours(l.State); err != nil {
		return m, err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(name), ".corral-backup-") // mode 0700, where there is room
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

// ours refuses a state that belongs to another user: what is read or put there by root would be as that user likes.
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
