//go:build !race

package programs

const tests = "plain" // the set that goes with this build
