package montecarlo

import "sync"

// reserve makes garbage collections rarer from its first call on. A simulation allocates much and keeps little, and the
// next collection begins when the memory in use has doubled: while a small workflow is planned, every few milliseconds.
// The reserved memory counts as in use, but is never touched, so that the operating system does not provide it.
var reserve = sync.OnceValue(func() []byte { return make([]byte, 64<<20) })
