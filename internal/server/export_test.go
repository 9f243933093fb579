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
