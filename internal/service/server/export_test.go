package server

import (
	"regexp"
	"slices"
)

var parameter = regexp.MustCompile(`:([a-z]+)`)

// Routes returns the query parameters of each route, by the route in OpenAPI's form: "GET /v1/sites/{site}".
func (s *Server) Routes() map[string][]string {
	routes := map[string][]string{}
	for _, r := range s.routes {
		routes[r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}")] = slices.Sorted(slices.Values(r.Parameters))
	}
	return routes
}
