package personal

import (
	"fmt"
	"os"
	"path/filepath"
)

// UsePrograms puts the corrald and the pilot of a folder first on the PATH, where they are looked for. An error says
// that they are not there.
func UsePrograms(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "corrald"))
	}
	if err != nil {
		return fmt.Errorf("the programs to use are not there; make build makes them: %w", err)
	}
	return os.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
