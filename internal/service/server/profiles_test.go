package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow/profile"
)

// runtimes reads the statistics of the tasks called t from a stored profile.
func runtimes(t *testing.T, p corral.Profile) profile.Stat {
	t.Helper()
	read := must(profile.ReadJSON(bytes.NewReader(p.Document), p.Name))(t)
	return read.Classes()[0].Stat(profile.Runtime)
}

// TestProfileGrows: a stored profile contains all merged runs, and plans use it by name.
func TestProfileGrows(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	save := func(run string, seconds float64) api.NewProfile {
		return api.NewProfile{Name: "mine", Merge: true,
			Sources: []api.ProfileSource{{Name: run + ".json", Document: documented(t, run, seconds)}}}
	}
	made := must(f.SaveProfile(t.Context(), save("a", 10), "k"))(t)
	if made.Document != nil || made.Kinds != 1 || made.Tasks != 1 || made.Runs != 1 || made.Owner != "local" {
		t.Errorf("saved %+v, want one task of one run, without a document", made)
	}
	if again := must(f.SaveProfile(t.Context(), save("a", 10), "k"))(t); again.ID != made.ID {
		t.Errorf("with the same key: profile %d, want %d", again.ID, made.ID)
	}
	must(f.SaveProfile(t.Context(), save("b", 20), ""))(t)
	grown := must(f.Profile(t.Context(), "mine"))(t)
	if s := runtimes(t, grown); grown.ID != made.ID || s.Count != 2 || s.Mean != 15 || grown.Digest == made.Digest ||
		!slices.Equal(grown.Sources, []string{"a.json", "b.json"}) {
		t.Errorf("grown %+v: %+v, want two tasks of 15 s", grown, s)
	}
	in := newPlan()
	in.Goal.Deadline = corral.Seconds(time.Hour)
	in.Profiles = []api.ProfileSource{{Name: "mine"}}
	document := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
	if took := document.Schedule[0].End - document.Schedule[0].Start; took != corral.Seconds(15*time.Second) {
		t.Errorf("the first task takes %s, want the mean of the profile, 15s", took)
	}
	copied := must(f.SaveProfile(t.Context(), api.NewProfile{Name: "copy", Sources: in.Profiles}, ""))(t)
	if copied.Digest != grown.Digest || !slices.Equal(copied.Sources, []string{"mine"}) {
		t.Errorf("copy %+v, want the same document, of mine", copied)
	}
}

// TestProfileOfAnother: names are separate for each owner.
func TestProfileOfAnother(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.CreateProfile(corral.Profile{Name: "theirs", Owner: "bo", Sources: []string{"a"}, Kinds: 1, Tasks: 1,
			Digest: "sha256:" + strings.Repeat("1", 64), Document: documented(t, "a", 1)})
		return err
	})
	_, err := f.Profile(t.Context(), "theirs")
	wantKind(t, "show", err, corral.NotFound, "profile")
	_, err = f.SaveProfile(t.Context(), api.NewProfile{Name: "mine", Sources: []api.ProfileSource{{Name: "theirs"}}}, "")
	wantKind(t, "save", err, corral.NotFound, "sources")
	in := newPlan()
	in.Profiles = []api.ProfileSource{{Name: "theirs"}}
	_, err = f.CreatePlan(t.Context(), in, "")
	wantKind(t, "plan", err, corral.NotFound, "profiles")
}

// TestProfileIsRemoved: its document is deleted permanently; its name is free, its history stays.
func TestProfileIsRemoved(t *testing.T) {
	t.Parallel()
	f := start(t)
	in := api.NewProfile{Name: "sky", Sources: []api.ProfileSource{{Name: "library:montage"}}}
	p := must(f.SaveProfile(t.Context(), in, ""))(t)
	for range 2 { // the second time it is already removed
		if gone := must(f.RemoveProfile(t.Context(), fmt.Sprint(p.ID)))(t); gone.State != corral.ProfileDeleted {
			t.Errorf("removed %+v", gone)
		}
	}
	if gone := must(f.Profile(t.Context(), fmt.Sprint(p.ID)))(t); gone.Document != nil {
		t.Error("a removed profile has a document")
	}
	if story := must(f.ProfileHistory(t.Context(), fmt.Sprint(p.ID)))(t); len(story) != 2 || story[1].Event != "delete" {
		t.Errorf("history %+v", story)
	}
	if list := must(f.Profiles(t.Context(), api.Filter{}))(t); len(list) != 0 {
		t.Errorf("listed %+v", list)
	}
	must(f.SaveProfile(t.Context(), in, ""))(t)
}

// TestBadProfiles: the error names each mistake, and nothing changes.
func TestBadProfiles(t *testing.T) {
	t.Parallel()
	f := start(t)
	library := []api.ProfileSource{{Name: "library:montage"}}
	a := []api.ProfileSource{{Name: "a.json", Document: documented(t, "a", 10)}}
	must(f.SaveProfile(t.Context(), api.NewProfile{Name: "mine", Sources: a}, ""))(t)
	for _, c := range []struct {
		name  string
		in    api.NewProfile
		kind  corral.Kind
		place string
	}{
		{"no name", api.NewProfile{Sources: library}, corral.Invalid, "name"},
		{"an id", api.NewProfile{Name: "7", Sources: library}, corral.Invalid, "name"},
		{"a file", api.NewProfile{Name: "a.csv", Sources: library}, corral.Invalid, "name"},
		{"no sources", api.NewProfile{Name: "a"}, corral.Invalid, "sources"},
		{"a source twice", api.NewProfile{Name: "a", Sources: append(library, library...)}, corral.Invalid, "sources[1]"},
		{"a run twice", api.NewProfile{Name: "a", Sources: []api.ProfileSource{a[0], {Name: "b", Document: a[0].Document}}},
			corral.Invalid, "sources"},
		{"no such run", api.NewProfile{Name: "a", Sources: []api.ProfileSource{{Name: "run:9"}}}, corral.NotFound, "sources"},
		{"no such profile", api.NewProfile{Name: "a", Sources: []api.ProfileSource{{Name: "b"}}}, corral.NotFound, "sources"},
		{"no name of a profile", api.NewProfile{Name: "a", Sources: []api.ProfileSource{{Name: "b/c"}}}, corral.Invalid, "sources[0]"},
		{"nothing in it", api.NewProfile{Name: "a", Sources: []api.ProfileSource{{Name: "b",
			Document: json.RawMessage(`{"version":1,"runs":[],"classes":[]}`)}}}, corral.Invalid, "sources"},
		{"there already", api.NewProfile{Name: "mine", Sources: library}, corral.Conflict, "name"},
		{"merged again", api.NewProfile{Name: "mine", Sources: a, Merge: true}, corral.Conflict, "sources"},
	} {
		_, err := f.SaveProfile(t.Context(), c.in, "")
		wantKind(t, c.name, err, c.kind, c.place)
	}
	all := must(f.Profiles(t.Context(), api.Filter{All: true}))(t)
	if len(all) != 1 || !slices.Equal(all[0].Sources, []string{"a.json"}) {
		t.Errorf("profiles %+v, want only the first, unchanged", all)
	}
}

// TestProfileIsThinned: regardless of the number of measurements, a stored profile has a limited number of them and the
// statistics of all.
func TestProfileIsThinned(t *testing.T) {
	t.Parallel()
	f := start(t)
	var samples []profile.Sample
	for i := range 3000 {
		s := profile.Sample{Subject: profile.Subject{Transformation: "t", Level: profile.AllLevels}, Run: "a", ID: fmt.Sprint(i)}
		s.Values.Set(profile.Runtime, float64(i))
		samples = append(samples, s)
	}
	var text bytes.Buffer
	if err := must(profile.Of(samples))(t).WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	in := api.NewProfile{Name: "many", Sources: []api.ProfileSource{{Name: "a.json", Document: text.Bytes()}}}
	p := must(f.SaveProfile(t.Context(), in, ""))(t)
	p = must(f.Profile(t.Context(), "many"))(t)
	read := must(profile.ReadJSON(bytes.NewReader(p.Document), p.Name))(t)
	if kept := len(read.Classes()[0].Samples()); kept != 1024 || p.Tasks != 3000 || runtimes(t, p).Mean != 1499.5 {
		t.Errorf("%d samples of %d tasks are kept, mean %g; want 1024, 3000, 1499.5", kept, p.Tasks, runtimes(t, p).Mean)
	}
}
