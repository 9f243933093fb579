package planning

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/workflow/profile"
)

// A Shelf looks up and merges the profiles that requests name.
type Shelf struct{ DB *store.DB }

// Limits of a stored profile. Estimates are based on the samples; the statistics of all tasks are exact without them.
const (
	mostSamples = 1024     // of each kind of tasks; fewer if the document would be too large
	maxDocument = 16 << 20 // bytes
	maxSources  = 1000
)

// Profile makes the profile that a request asks to store. It also returns the digest of the stored profile that it
// extends, which is empty for a new profile.
func (s Shelf) Profile(ctx context.Context, owner string, in api.NewProfile) (row corral.Profile, was string,
	err error) {
	p, err := s.merged(ctx, owner, "sources", in.Sources)
	if err != nil {
		return row, "", err
	}
	row = corral.Profile{Name: in.Name, Owner: owner}
	if in.Merge {
		if was, err = s.grown(ctx, &row, p); err != nil {
			return row, "", err
		}
	}
	for _, source := range in.Sources {
		row.Sources = append(row.Sources, source.Name)
	}
	if len(row.Sources) > maxSources {
		return row, "", corral.ErrorAt(corral.Invalid, "sources", "it would have more than %d sources: save a new one",
			maxSources)
	}
	return row, was, describe(&row, p)
}

// grown sets row to its owner's stored profile with the same name, merges that profile into p, and returns its digest.
// If there is none, it does nothing.
func (s Shelf) grown(ctx context.Context, row *corral.Profile, p *profile.Profile) (was string, err error) {
	kept, err := s.kept(ctx, row.Owner, row.Name)
	if corral.KindOf(err) == corral.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	old, err := profile.ReadJSON(bytes.NewReader(kept.Document), kept.Name)
	if err != nil {
		return "", fmt.Errorf("reading profile %d: %w", kept.ID, err)
	}
	if err := p.Merge(old); err != nil {
		return "", corral.ErrorAt(corral.KindOf(err), "sources", "%w", err)
	}
	*row = kept
	return kept.Digest, nil
}

func (s Shelf) kept(ctx context.Context, owner, name string) (corral.Profile, error) {
	return store.Read(ctx, s.DB.Request(ctx), func(tx *store.Tx) (corral.Profile, error) {
		return tx.ProfileNamed(owner, name)
	})
}

// describe fills the row of a profile.
func describe(row *corral.Profile, p *profile.Profile) error {
	var text bytes.Buffer
	for most := mostSamples; ; most /= 4 {
		p.Thin(most)
		text.Reset()
		if err := p.WriteJSON(&text); err != nil {
			return err
		}
		if text.Len() <= maxDocument {
			break
		}
		if most == 0 {
			return corral.ErrorAt(corral.Invalid, "sources", "statistics of %d kinds of tasks have more than %d MiB",
				len(p.Transformations()), maxDocument>>20)
		}
	}
	document, err := json.Marshal(json.RawMessage(text.Bytes())) // compact, as it is sent, so that the digest matches
	if err != nil {
		return err
	}
	row.Document, row.Digest = document, fmt.Sprintf("sha256:%x", sha256.Sum256(document))
	row.Runs, row.Kinds, row.Tasks = len(p.Runs()), len(p.Transformations()), 0
	for _, c := range p.Classes() {
		row.Tasks += c.Count()
	}
	if row.Tasks == 0 {
		return corral.ErrorAt(corral.Invalid, "sources", "none of them contains a measurement")
	}
	return nil
}

// merged looks up or parses the profiles that a request names, at least one, and merges them. place is the field of the
// request that names them.
func (s Shelf) merged(ctx context.Context, owner, place string, named []api.ProfileSource) (*profile.Profile, error) {
	all := profile.New()
	for _, source := range named {
		p, err := s.profile(ctx, owner, source)
		if err == nil {
			err = all.Merge(p)
		}
		switch kind := corral.KindOf(err); {
		case err == nil:
		case len(source.Document) > 0 && kind == corral.Invalid: // the error names the document
			return nil, err
		case kind == corral.Conflict:
			return nil, corral.ErrorAt(corral.Invalid, place, "%w", err)
		default:
			return nil, corral.ErrorAt(kind, place, "%w", err)
		}
	}
	return all, nil
}

// profile looks up or parses one profile of a request.
func (s Shelf) profile(ctx context.Context, owner string, named api.ProfileSource) (*profile.Profile, error) {
	if id, ok := strings.CutPrefix(named.Name, api.RunProfile); ok {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil, corral.Errorf(corral.Invalid, "%.80q is not the id of a run", id)
		}
		return s.ofRun(ctx, corral.RunID(n))
	}
	if name, ok := strings.CutPrefix(named.Name, api.LibraryProfile); ok {
		p, ok := profile.FromLibrary(name)
		if !ok {
			return nil, corral.Errorf(corral.NotFound, "the library has no profile %.80q: it has %s", name,
				strings.Join(profile.Library(), ", "))
		}
		return p, nil
	}
	if len(named.Document) > 0 {
		return profile.ReadJSON(bytes.NewReader(named.Document), named.Name)
	}
	row, err := s.kept(ctx, owner, named.Name)
	if err != nil {
		return nil, err
	}
	return profile.ReadJSON(bytes.NewReader(row.Document), named.Name)
}

func (s Shelf) ofRun(ctx context.Context, id corral.RunID) (*profile.Profile, error) {
	row, err := store.Read(ctx, s.DB.Request(ctx), func(tx *store.Tx) (corral.Run, error) { return tx.Run(id) })
	if err != nil {
		return nil, err
	}
	return run.Profile(ctx, row)
}
