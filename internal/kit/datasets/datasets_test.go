package datasets

import (
	"os"
	"path/filepath"
	"testing"
)

// The data is next to the repository, or in the folder named by the variable. If it is missing, the error names the
// path and both remedies.
func TestFind(t *testing.T) {
	t.Parallel()
	beside := t.TempDir()
	top, elsewhere := filepath.Join(beside, "clone"), t.TempDir()
	for _, dir := range []string{top + "/near/dax", beside + "/shared/data/dax", elsewhere + "/gallery"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ folder, name, want string }{
		{"", DAX, beside + "/shared/data/dax"},
		{elsewhere, Gallery, elsewhere + "/gallery"},
		{"near", DAX, top + "/near/dax"},
	} {
		if got, err := find(top, c.folder, c.name); got != c.want || err != nil {
			t.Errorf("find(%q, %q) = %q, %v; want %q", c.folder, c.name, got, err, c.want)
		}
	}
	_, err := find(top, "", Gallery)
	want := "this test needs published data, which the repository does not contain: stat " + beside +
		"/shared/data/gallery: no such file or directory; put the data there, or set CORRAL_DATA to its folder " +
		`(CONTRIBUTING.md, "Published data")`
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}
