package api

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/corral-pilot/corral"
)

// Names of profiles that begin so need no document.
const (
	LibraryProfile = "library:"
	RunProfile     = "run:"
)

// A ProfileSource names a profile of tasks: library:NAME is one that comes with Corral, run:ID that of a run. Of other
// names, one with a document is what messages call it, and one without is that of a profile that corrald keeps.
type ProfileSource struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document,omitempty"` // as package profile writes it
}

// NewProfile asks corrald to keep what its sources say, merged.
type NewProfile struct {
	Name    string          `json:"name"`
	Sources []ProfileSource `json:"sources"`
	Merge   bool            `json:"merge,omitempty"` // into the profile of that name, if there is one
}

func profilePath(ref string) string { return "/v1/profiles/" + url.PathEscape(ref) }

// SaveProfile has corrald keep a profile. That there is one of the name is a Conflict unless it is to be merged; so is
// a run that both have. The answer is without the document. An empty key is replaced by a random one.
func (c *Client) SaveProfile(ctx context.Context, n NewProfile, key string) (corral.Profile, error) {
	return create[corral.Profile](ctx, c, "/v1/profiles", key, n)
}

// Profiles lists profiles, oldest first, without their documents.
func (c *Client) Profiles(ctx context.Context, f Filter) ([]corral.Profile, error) {
	return list[corral.Profile](ctx, c, "/v1/profiles", f.query())
}

// Profile returns the profile with the name or id ref, with its document. A DELETED profile is found by its id only.
func (c *Client) Profile(ctx context.Context, ref string) (corral.Profile, error) {
	return get[corral.Profile](ctx, c, profilePath(ref), nil)
}

// RemoveProfile forgets a profile. Plans that were made by it stay as they are.
func (c *Client) RemoveProfile(ctx context.Context, ref string) (corral.Profile, error) {
	return remove[corral.Profile](ctx, c, profilePath(ref), nil)
}

// ProfileHistory returns what happened to the profile, oldest first.
func (c *Client) ProfileHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, profilePath(ref)+"/history", nil)
}
