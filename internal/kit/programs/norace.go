//go:build !race

package programs

const tests = "plain" // the set of programs for this build
