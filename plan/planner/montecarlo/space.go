package montecarlo

import "sync"

// ballast makes garbage collections rarer, from its first call to the end of the process. A simulation allocates much
// and keeps little, and the next collection begins when the memory in use has doubled: while a small workflow is
// planned, that is every few milliseconds. The ballast counts as in use; nothing is written to it, so that the
// operating system need not provide it.
var ballast = sync.OnceValue(func() []byte { return make([]byte, 64<<20) })
