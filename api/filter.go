package api

import (
	"net/url"
	"slices"
)

// A Filter narrows a list; its zero value lists everything that is not DELETED.
type Filter struct {
	All     bool              // includes DELETED objects
	Owner   string            // only of this owner; empty: of all owners the caller may see
	Site    string            // glideins of this site: name or id
	Cluster string            // glideins or runs of this cluster: name or id
	Labels  map[string]string // glideins or runs that have all of these labels
	States  []string          // in any of these states; DELETED does not require All
}

// query returns the filter as query parameters, in a fixed order.
func (f Filter) query() url.Values {
	q := url.Values{}
	if f.All {
		q.Set("all", "true")
	}
	for name, value := range map[string]string{"owner": f.Owner, "site": f.Site, "cluster": f.Cluster} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	slices.Sort(q["label"])
	for _, s := range f.States {
		q.Add("state", s)
	}
	return q
}
