package server

import (
	"bytes"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/provision"
	"github.com/corral-pilot/corral/profile"
)

// experience gathers what is known of the tasks of a workflow that is to be planned, beside what the workflow says.
func (h *planHandlers) experience(in api.NewPlan) (provision.Experience, error) {
	x := provision.Experience{Learn: in.Learn, Fallback: time.Duration(in.DefaultRuntime)}
	for _, named := range in.Profiles {
		p, err := h.profile(named)
		switch {
		case err != nil:
		case x.Given == nil:
			x.Given = p
		default:
			err = x.Given.Merge(p)
		}
		if corral.KindOf(err) == corral.Conflict {
			err = corral.ErrorAt(corral.Invalid, "profiles", "%w", err)
		}
		if err != nil {
			return x, err
		}
	}
	return x, nil
}

// profile finds or reads one profile of a request.
func (h *planHandlers) profile(named api.PlanProfile) (*profile.Profile, error) {
	if name, ok := strings.CutPrefix(named.Name, api.LibraryProfile); ok {
		p, ok := profile.FromLibrary(name)
		if !ok {
			return nil, corral.ErrorAt(corral.NotFound, "profiles", "the library has no profile %.80q: it has %s", name,
				strings.Join(profile.Library(), ", "))
		}
		return p, nil
	}
	return profile.ReadJSON(bytes.NewReader(named.Document), named.Name)
}
