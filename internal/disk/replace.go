package disk

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes the file name with this mode, at once: whatever reads it finds the old content or the new, and never a
// part. It is no protection from a loss of power. Only one caller at a time may replace a file.
func Replace(name string, content []byte, mode fs.FileMode) error {
	aside := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
	if err := os.WriteFile(aside, content, mode); err != nil {
		return err
	}
	return os.Rename(aside, name)
}
