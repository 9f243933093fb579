//go:build race

package programs

const tests = "race" // the set of programs for this build
