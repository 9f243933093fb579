package api

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// UsageHours are the core-hours that batch systems allocated to pilots, by use. Allocated is the sum of the other
// fields.
type UsageHours struct {
	Allocated float64 `json:"allocated_core_hours"`
	Used      float64 `json:"used_core_hours"` // by tasks whose results count
	Idle      float64 `json:"idle_core_hours"`
	Lost      float64 `json:"lost_core_hours"` // by work that had to be repeated
}

// A UsageRow is the usage of one group. Fields by which rows are not grouped are absent. Site is also absent for cores
// that were not provided by a pilot of Corral, and Workflow for unplanned pilots while no task runs on them.
type UsageRow struct {
	User     string `json:"user,omitempty"`
	Site     string `json:"site,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	UsageHours
}

// Usage is the core time held by pilots in a period. The period begins and ends at a full hour of UTC unless it ends
// now.
type Usage struct {
	Since time.Time  `json:"since,omitzero"` // absent: from the beginning
	Until time.Time  `json:"until"`
	By    []string   `json:"by"` // grouping of items: user, site, workflow
	Items []UsageRow `json:"items"`
	Total UsageRow   `json:"total"`
}

// A UsageChoice narrows and groups usage. The zero value selects all usage, by user, site and workflow.
type UsageChoice struct {
	Since, Until time.Time
	By           []string
}

// Usage returns the core time held by pilots, by use.
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
