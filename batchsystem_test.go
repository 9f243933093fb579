package corral_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// Given must list every option of BatchOptions. Otherwise requests would not be checked for a new option, and no batch
// system would receive it.
func TestGivenListsEveryBatchOption(t *testing.T) {
	t.Parallel()
	options := reflect.TypeFor[corral.BatchOptions]()
	for i := range options.NumField() {
		name, _, _ := strings.Cut(options.Field(i).Tag.Get("json"), ",")
		var o corral.BatchOptions
		want := []corral.BatchOption{{Name: name, Value: "a"}}
		switch f := reflect.ValueOf(&o).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("a")
		default:
			f.Set(reflect.ValueOf([]string{"a", "b"}))
			want = append(want, corral.BatchOption{Name: name, Value: "b"})
		}
		if got := o.Given(); !slices.Equal(got, want) {
			t.Errorf("Given of %s = %v, want %v", name, got, want)
		}
		if got := (corral.BatchSystem{}).Lacks(o); !slices.Equal(got, []string{name}) {
			t.Errorf("a batch system without options lacks %q of %s", got, name)
		}
	}
	if got := (corral.BatchOptions{}).Given(); len(got) > 0 {
		t.Errorf("Given of no options = %v", got)
	}
}

// The tables of dialects name fields of BatchOptions; a misspelled name would have no effect.
func TestBatchSystemsNameExistingOptions(t *testing.T) {
	t.Parallel()
	every := corral.BatchOptions{Queue: "a", Account: "a", QOS: "a", Constraint: "a", SiteOptions: []string{"a"}}
	for _, b := range corral.BatchSystems {
		for name := range b.Options {
			if !slices.Contains(every.Given(), corral.BatchOption{Name: name, Value: "a"}) {
				t.Errorf("%s has an option %q, which is not in BatchOptions", b.Name, name)
			}
		}
	}
}
