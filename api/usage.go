package api

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// UsageHours are core-hours: what batch systems gave pilots, and what became of it. Allocated is the sum of the others.
type UsageHours struct {
	Allocated float64 `json:"allocated_core_hours"`
	Used      float64 `json:"used_core_hours"` // by tasks whose work counts
	Idle      float64 `json:"idle_core_hours"`
	Lost      float64 `json:"lost_core_hours"` // by what ran and had to run again
}

// A UsageRow is what somebody had. Fields by which rows are not grouped are absent; so is the site of cores that no
// pilot of Corral brought, and the workflow of pilots that no plan asked for while nothing ran on them.
type UsageRow struct {
	User     string `json:"user,omitempty"`
	Site     string `json:"site,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	UsageHours
}

// Usage is what pilots held in a time, which begins and ends with a whole hour of UTC unless it ends now.
type Usage struct {
	Since time.Time  `json:"since,omitzero"` // absent: from the beginning
	Until time.Time  `json:"until"`
	By    []string   `json:"by"` // what items are grouped by: user, site, workflow
	Items []UsageRow `json:"items"`
	Total UsageRow   `json:"total"`
}

// A UsageChoice narrows and groups usage. The zero value is all that ever was, by user, site and workflow.
type UsageChoice struct {
	Since, Until time.Time
	By           []string
}

// Usage returns what pilots held, and what became of it.
func (c *Client) Usage(ctx context.Context, choice UsageChoice) (Usage, error) {
	query := url.Values{}
	if !choice.Since.IsZero() {
		query.Set("since", choice.Since.Format(time.RFC3339Nano))
	}
	if !choice.Until.IsZero() {
		query.Set("until", choice.Until.Format(time.RFC3339Nano))
	}
	if len(choice.By) > 0 {
		query.Set("by", strings.Join(choice.By, ","))
	}
	return get[Usage](ctx, c, "/v1/usage", query)
}
