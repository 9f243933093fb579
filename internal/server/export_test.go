package server

import (
	"regexp"
	"slices"

	"github.com/labstack/echo/v4"
)

var parameter = regexp.MustCompile(`:([a-z]+)`)

// Routes lists the routes as OpenAPI writes them: "GET /v1/sites/{site}".
func (s *Server) Routes() []string {
	var routes []string
	for _, r := range s.echo.Routes() {
		routes = append(routes, r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}"))
	}
	slices.Sort(routes)
	return routes
}

// PanicOn makes the server panic when GET path is asked for.
func (s *Server) PanicOn(path string) {
	s.echo.GET(path, func(echo.Context) error { panic("a secret") })
}

// Ranges returns the least and the most of each number that a request may have.
func Ranges() map[string][2]float64 {
	all := map[string][2]float64{}
	for field, b := range ranges {
		least := b.least
		if b.has(0) {
			least = 0
		}
		all[field] = [2]float64{least, b.most}
	}
	return all
}
