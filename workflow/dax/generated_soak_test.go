//go:build soak

package dax_test

import "testing"

// Every file of the generator reads with the numbers of its index: 426 MB of XML.
func TestAllGeneratedWorkflows(t *testing.T) {
	t.Parallel()
	checkGenerated(t, allGenerated, 285, func(string) bool { return true })
}
