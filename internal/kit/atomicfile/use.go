package atomicfile

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// A Use is the disk usage of a folder.
type Use struct {
	Files int64 // including folders and links
	Bytes int64 // of blocks, as du counts them
}

// UseOf measures a folder and everything below it; a missing folder uses nothing. Files that disappear during the scan
// are ignored, and a file with several names counts once. The error is ctx's cause if ctx ends first.
func UseOf(ctx context.Context, dir string) (u Use, err error) {
	type inode struct{ device, number uint64 }
	seen := make(map[inode]bool) // files with several names
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
		const block = 512 // bytes, regardless of the file system's block size
		u.Files++
		u.Bytes += st.Blocks * block
		return nil
	})
	return u, err
}
