package api

import "time"

// A Backup says what a backup of corrald has: the file's last entry, and what `corral admin backup` prints.
type Backup struct {
	Format int               `json:"format"`
	Corral string            `json:"corral"`         // that wrote it
	Schema int               `json:"schema_version"` // of the database
	MadeAt time.Time         `json:"made_at"`
	Host   string            `json:"host"`
	Runs   map[string]string `json:"runs,omitempty"` // :: id → directory, of those that were not over
	Files  []BackupFile      `json:"files"`
}

// A BackupFile is one entry of a backup.
type BackupFile struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// A Restored says what `corral admin restore` put back.
type Restored struct {
	Backup
	Aside    string   `json:"aside,omitempty"`     // where what was there before is now; empty: nothing was
	RunsPut  []string `json:"runs_put,omitempty"`  // directories that got their workflow and journal back
	RunsKept []string `json:"runs_kept,omitempty"` // directories that had theirs
}
