//go:build race

package programs

const tests = "race" // the set that goes with this build
