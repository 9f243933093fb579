package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// Written events are read back unchanged, with comments in between.
func TestEventsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	want := []Event{
		{ID: 7, Kind: EventReady, Data: json.RawMessage("{}")},
		{Kind: "run", Data: json.RawMessage(`{"id":3,"workflow":"a: b"}`)},
		{ID: 9, Kind: "site", Data: json.RawMessage(`{"id":1}`)},
	}
	var text bytes.Buffer
	for _, e := range want {
		text.WriteString(":\n\n")
		if err := e.Write(&text); err != nil {
			t.Fatal(err)
		}
	}
	var got []Event
	err := readEvents(&text, func(e Event) error { got = append(got, e); return nil })
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-written +read):\n%s", err, diff)
	}
}

func TestMalformedEvents(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"id: x\n\n", "event: run\ndata: {\n\n", "event: run\n\n", "event: run\ndata: {}\n", "<html>\nevent: run",
	} {
		err := readEvents(strings.NewReader(text), func(Event) error { return nil })
		if corral.KindOf(err) != corral.Unavailable {
			t.Errorf("%q: %v", text, err)
		}
	}
	mine := errors.New("mine")
	err := readEvents(strings.NewReader("event: run\ndata: {}\n\n"), func(Event) error { return mine })
	if !errors.Is(err, mine) {
		t.Errorf("the reader's own error: %v", err)
	}
}

// For any stream, the reader returns an error or accepts only events with JSON data.
func FuzzReadEvents(f *testing.F) {
	f.Add("id: 1\nevent: run\ndata: {}\n\n:\n\nevent: site\ndata: {\"id\": 1}\n\n")
	f.Add("id: 99999999999999999999\n\n")
	f.Add("data:{}\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = readEvents(strings.NewReader(text), func(e Event) error {
			if e.Kind == "" || !json.Valid(e.Data) {
				t.Errorf("%+v is not an event", e)
			}
			return nil
		})
	})
}
