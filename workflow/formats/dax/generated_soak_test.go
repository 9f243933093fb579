//go:build soak

package dax_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/datasets"
	"github.com/corral-pilot/corral/workflow"
)

// Every file of the generator, 426 MB of XML in total, is read with the numbers of its index.
func TestAllGeneratedWorkflows(t *testing.T) {
	t.Parallel()
	checkGenerated(t, datasets.Path(t, datasets.DAX), 285)
}

// ofGallery holds the tasks and edges of the gallery's files, counted by an XML reader in another language.
var ofGallery = map[string][2]int{
	"CyberShake_30": {30, 52}, "CyberShake_50": {50, 88}, "CyberShake_100": {100, 180}, "CyberShake_1000": {1000, 1988},
	"Epigenomics_24": {24, 27}, "Epigenomics_46": {47, 54}, "Epigenomics_100": {100, 122}, "Epigenomics_997": {997, 1234},
	"Inspiral_30": {30, 35}, "Inspiral_50": {50, 60}, "Inspiral_100": {100, 119}, "Inspiral_1000": {1000, 1233},
	"Montage_25": {25, 45}, "Montage_50": {50, 106}, "Montage_100": {100, 233}, "Montage_1000": {1000, 2485},
	"Sipht_30": {29, 33}, "Sipht_60": {58, 66}, "Sipht_100": {97, 109},
	"HEFT_paper": {10, 15}, "floodplain": {7, 10},
}

// The files of the gallery are read with their numbers of tasks and edges.
func TestGallery(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(datasets.Path(t, datasets.Gallery), "*.xml.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(ofGallery) {
		t.Errorf("%d files, want %d", len(files), len(ofGallery))
	}
	for _, file := range files {
		wf, warnings, err := readFile(t, file)
		name := strings.TrimSuffix(filepath.Base(file), ".xml.gz")
		if want := ofGallery[name]; err != nil || len(wf.Tasks) != want[0] || wf.Graph.Edges() != want[1] {
			t.Errorf("%s: %v, want %v tasks and edges", name, err, want)
		}
		below := slices.ContainsFunc(warnings, func(w workflow.Warning) bool { return strings.Contains(w.Message, " below 0 is ignored") })
		if below != (name == "Epigenomics_997") {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
}
