package personal

import (
	"fmt"
	"os"
	"path/filepath"
)

// UsePrograms puts a folder that contains corrald and the pilot first on the PATH, where they are looked up. It
// returns an error if they are not there.
func UsePrograms(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "corrald"))
	}
	if err != nil {
		return fmt.Errorf("the programs do not exist; `make build` builds them: %w", err)
	}
	return os.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
