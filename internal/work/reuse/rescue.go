package reuse

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// WriteRescue writes the rescue file with the next number, and returns its name.
func WriteRescue(dag string, r dagman.Rescue) (string, error) {
	entries, err := os.ReadDir(filepath.Dir(dag))
	if err != nil {
		return "", err
	}
	last := 0
	for _, e := range entries {
		last = max(last, dagman.RescueNumber(filepath.Base(dag), e.Name()))
	}
	for n := last + 1; n <= dagman.MaxRescue; n++ {
		name := dagman.RescueName(dag, n)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return name, errors.Join(r.Write(f), f.Close())
	}
	return "", fmt.Errorf("%s has %d rescue files: remove some", dag, dagman.MaxRescue)
}
