package condor

import (
	"context"
	"errors"
	"testing"
)

// A command that prints without end is ended through its context.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := output{most: 10, overflow: cancel}
	if n, err := o.Write(make([]byte, 10)); n != 10 || err != nil || ctx.Err() != nil {
		t.Errorf("ten bytes: %d, %v, %v", n, err, ctx.Err())
	}
	if _, err := o.Write(make([]byte, 1)); !errors.Is(err, errOutput) || !errors.Is(context.Cause(ctx), errOutput) || o.text.Len() != 10 {
		t.Errorf("one more: %v, %v, %d bytes", err, context.Cause(ctx), o.text.Len())
	}
}
