package server

import (
	"bytes"

	"github.com/corral-pilot/corral/internal/rest"
	"github.com/corral-pilot/corral/internal/run"
)

// profile answers with what was measured of the run's tasks, as its end left it in the run's directory.
func (h *runHandlers) profile(c *rest.Call) error {
	r, err := h.Load(c.Context(), c)
	if err != nil {
		return err
	}
	p, err := run.Profile(c.Context(), r)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := p.WriteJSON(&text); err != nil {
		return err
	}
	return c.Document("application/json", text.Bytes())
}
