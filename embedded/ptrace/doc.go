// Package ptrace runs a command and watches all of its processes, as a debugger does but without stopping them for
// longer than it takes to note what happened: by ptrace(2), which needs no privileges over one's own processes. The
// result is a trace.Trace.
//
// There are two modes. In mode processes a process stops when it starts, forks, executes a program and ends: some five
// times. Everything else is read from /proc at its end, when the kernel's counters are complete. In mode io it also
// stops at each system call that moves bytes, before and after. A seccomp filter picks these calls out, so that all
// others go on at full speed; where none can be set, every call stops twice.
//
// # One thread
//
// The kernel ties a tracee to the thread that traces it, not to the process: that thread alone may wait for it and have
// it go on. So a Run has a thread of its own, one that has no other children, since its wait is for all that it has
// (onOwnThread). All state of a Run belongs to that thread; there are no locks.
//
// # The way of a command
//
// It is forked as a tracee that stops once its program is loaded (PTRACE_TRACEME), and is then handed over to
// PTRACE_SEIZE: only a seized tracee can stay stopped when its shell stops it. In mode io it is made to call seccomp(2)
// itself before its first instruction (inject.go), because a filter is inherited and never taken off. From then on
// whatever it forks is traced from birth, and whatever it executes stays so.
//
// A tracee whose tracer is gone would have its filtered calls fail. It is killed instead (PTRACE_O_EXITKILL).
//
// # What is exact, and what is not
//
// Processes and threads are counted as the kernel reports them, in any order: a child may be seen before its parent has
// reported it, or be killed before it is seen at all (tree.go). Bytes are those that calls returned. Where a descriptor
// leads is looked up when a call begins, so descriptors that were duplicated, inherited, received or closed need no
// accounting; only a thread that replaces a descriptor in the microseconds between, while another uses it, has bytes
// booked to the wrong file. Calls that move bytes in other ways are only counted (calls.go).
//
// It is not a sandbox: a program sees that it is traced, cannot trace its own children, and does not get the rights of
// set-user-ID programs unless the tracer is root. These are the kernel's rules.
package ptrace
