package corral

import "time"

// SiteID identifies a site for ever; its name is free again once it is deleted.
type SiteID int64

// A SiteState says what may be asked of a site.
type SiteState string

const (
	SiteNew      SiteState = "NEW"      // recorded; the engine stages it next
	SiteStaging  SiteState = "STAGING"  // the setup job is on its way; the engine moves it on
	SiteReady    SiteState = "READY"    // pilots may be submitted
	SiteExiting  SiteState = "EXITING"  // to be removed; waits for its glideins to go
	SiteRemoving SiteState = "REMOVING" // the cleanup job is on its way
	SiteDeleted  SiteState = "DELETED"  // tombstone
	SiteFailed   SiteState = "FAILED"   // setup or cleanup failed; only remove helps
)

// SiteStates lists all states in their order of life.
var SiteStates = []SiteState{SiteNew, SiteStaging, SiteReady, SiteExiting, SiteRemoving, SiteDeleted, SiteFailed}

// A SiteMove names an event of a site's life.
type SiteMove string

const (
	SiteStage    SiteMove = "stage"
	SiteStaged   SiteMove = "staged"
	SiteFail     SiteMove = "fail"
	SiteRemove   SiteMove = "remove"
	SiteEmptied  SiteMove = "emptied"
	SiteUnstaged SiteMove = "unstaged"
	SiteForget   SiteMove = "forget"
)

// A Platform is what worker packages are chosen by.
type Platform struct {
	OS   string `json:"os"`   // linux
	Arch string `json:"arch"` // x86_64, aarch64: as uname -m says
	Libc string `json:"libc"` // glibc2.36, musl, none
}

// A Site is a place that can run batch jobs.
type Site struct {
	ID            SiteID    `json:"id"`
	Name          string    `json:"name"`
	Owner         string    `json:"owner"`
	Contact       string    `json:"contact"` // how to reach it: local:
	Batch         string    `json:"batch"`   // what queues jobs there: fork
	Root          string    `json:"root"`    // directory at the site that is ours alone
	Platform      Platform  `json:"platform"`
	Package       string    `json:"package,omitempty"`        // worker package installed there, by name
	PackageDigest string    `json:"package_digest,omitempty"` // sha256:HEX of its archive
	State         SiteState `json:"state"`
	Reason        string    `json:"reason,omitempty"` // why it is in State, one line
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
}

// Terminal reports whether no event can move a site out of s.
func (s SiteState) Terminal() bool { return s == SiteDeleted }

// Apply moves the site by one event; no other code sets State.
func (s Site) Apply(move SiteMove, reason string, at time.Time) (Site, error) {
	next, err := SiteMoves.Next(s.State, move)
	if err != nil {
		return s, ErrorAt(Conflict, "site "+s.Name, "%w", err)
	}
	s.State, s.Reason, s.UpdatedAt = next, reason, at
	return s, nil
}
