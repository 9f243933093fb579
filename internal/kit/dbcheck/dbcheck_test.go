package dbcheck_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/dbcheck"
)

// A written record is read back; a missing record is distinguished from a malformed record.
func TestRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	if r, found, err := dbcheck.Read(path); found || err != nil || r != (dbcheck.Record{}) {
		t.Errorf("Read of nothing = %v, %v, %v", r, found, err)
	}
	for _, want := range []dbcheck.Record{
		{At: time.Unix(1, 0).UTC(), By: dbcheck.Start},
		{At: time.Unix(2, 0).UTC(), By: dbcheck.Backup, Damage: "page 7"},
	} {
		if err := dbcheck.Write(path, want); err != nil {
			t.Fatal(err)
		}
		got, found, err := dbcheck.Read(path)
		if !found || err != nil || got != want || got.Whole() != (want.Damage == "") {
			t.Errorf("Read = %v, %v, %v, want %v", got, found, err, want)
		}
	}
	if err := os.WriteFile(dbcheck.File(path), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, found, err := dbcheck.Read(path); found || err == nil {
		t.Errorf("Read of half a record = %v, %v", found, err)
	}
}
