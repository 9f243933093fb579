// Package wrap adds context to errors in return statements.
package wrap

import "fmt"

// Errorf returns err with a description of what was attempted in front of it, or nil if err is nil.
func Errorf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
