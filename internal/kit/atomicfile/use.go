package atomicfile

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// A Use is what a folder takes on its disk.
type Use struct {
	Files int64 // with folders and links
	Bytes int64 // of blocks, as du counts them
}

// UseOf measures a folder with all below it; one that there is not takes nothing. What goes while it looks is left out,
// and a file with several names counts once. The error is ctx's cause if ctx ends first.
func UseOf(ctx context.Context, dir string) (u Use, err error) {
	type inode struct{ device, number uint64 }
	seen := make(map[inode]bool) // of those with several names
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if st.Nlink > 1 && !e.IsDir() {
			is := inode{uint64(st.Dev), st.Ino}
			if seen[is] {
				return nil
			}
			seen[is] = true
		}
		const block = 512 // bytes, whatever the file system's own are
		u.Files++
		u.Bytes += st.Blocks * block
		return nil
	})
	return u, err
}
