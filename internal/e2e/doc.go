// Package e2e runs the three programs together, as users do: real processes, real sockets, a real
// site. Its tests are the acceptance list of the README's promises; it has no code but tests.
package e2e
