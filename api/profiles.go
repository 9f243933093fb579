package api

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/corral-pilot/corral"
)

// Prefixes of the names of profiles that need no document.
const (
	LibraryProfile = "library:"
	RunProfile     = "run:"
)

// A ProfileSource names a profile of tasks. library:NAME is a profile that is part of Corral, and run:ID is the profile
// of a run. Any other name labels the document in messages or, without a document, names a profile that corrald keeps.
type ProfileSource struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document,omitempty"` // in the format of package profile
}

// NewProfile requests corrald to merge the sources and keep the result.
type NewProfile struct {
	Name    string          `json:"name"`
	Sources []ProfileSource `json:"sources"`
	Merge   bool            `json:"merge,omitempty"` // into the profile of that name, if it exists
}

func profilePath(ref string) string { return "/v1/profiles/" + url.PathEscape(ref) }

// SaveProfile makes corrald keep a profile. If a profile with the same name exists and Merge is not set, or if both
// profiles contain the same run, the error is a Conflict. The answer omits the document. An empty key is replaced by a
// random one.
func (c *Client) SaveProfile(ctx context.Context, n NewProfile, key string) (corral.Profile, error) {
	return create[corral.Profile](ctx, c, "/v1/profiles", key, n)
}

// Profiles lists profiles, oldest first, without their documents.
func (c *Client) Profiles(ctx context.Context, f Filter) ([]corral.Profile, error) {
	return list[corral.Profile](ctx, c, "/v1/profiles", f.query())
}

// Profile returns the profile with the name or id ref, with its document. A DELETED profile is found only by its id.
func (c *Client) Profile(ctx context.Context, ref string) (corral.Profile, error) {
	return get[corral.Profile](ctx, c, profilePath(ref), nil)
}

// RemoveProfile removes a profile. Plans that were made with it are not changed.
func (c *Client) RemoveProfile(ctx context.Context, ref string) (corral.Profile, error) {
	return remove[corral.Profile](ctx, c, profilePath(ref), nil)
}

// ProfileHistory returns what happened to the profile, oldest first.
func (c *Client) ProfileHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, profilePath(ref)+"/history", nil)
}
