package api

import "time"

// A Backup describes a backup of corrald. It is the file's last entry, and `corral admin backup` prints it.
type Backup struct {
	Format int               `json:"format"`
	Corral string            `json:"corral"`         // version of Corral that wrote it
	Schema int               `json:"schema_version"` // of the database
	MadeAt time.Time         `json:"made_at"`
	Host   string            `json:"host"`
	Runs   map[string]string `json:"runs,omitempty"` // :: id → directory, of the runs that were not over
	Files  []BackupFile      `json:"files"`
}

// A BackupFile is one entry of a backup.
type BackupFile struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// A Restored describes the result of `corral admin restore`.
type Restored struct {
	Backup
	Aside    string   `json:"aside,omitempty"`     // new location of the previous data; empty: no previous data
	RunsPut  []string `json:"runs_put,omitempty"`  // directories whose workflow and journal were restored
	RunsKept []string `json:"runs_kept,omitempty"` // directories that already contained both
}
