// Package ptrace runs a command and watches all of its processes, like a debugger, but without stopping them for longer
// than it takes to record an event. It uses ptrace(2), which needs no privileges for one's own processes. The result is
// a trace.Trace.
//
// There are two modes. In mode processes, a process stops when it starts, forks, executes a program and ends: about
// five times. All other data is read from /proc at the end of the process, when the kernel's counters are complete. In
// mode io a process also stops before and after each system call that moves bytes. A seccomp filter selects these
// calls, so that all others run at full speed; if no filter can be set, the process stops twice for every call.
//
// The kernel ties a tracee to the thread that traces it, not to the process: only that thread may wait for the tracee
// and resume it. So a Run has a thread of its own, without other children, since it waits for all its children
// (onOwnThread). All state of a Run belongs to that thread; there are no locks.
//
// The command is forked as a tracee that stops once its program is loaded (PTRACE_TRACEME), and is then handed over to
// PTRACE_SEIZE: only a seized tracee can remain stopped when its shell stops it. In mode io the tracee is made to call
// seccomp(2) itself before its first instruction (inject.go), because a filter is inherited and cannot be removed. From
// then on all processes that it forks are traced from birth, and remain traced when they execute a program.
//
// The filtered calls of a tracee without a tracer would fail. Such a tracee is killed instead (PTRACE_O_EXITKILL).
//
// Processes and threads are counted as the kernel reports them, in any order: a child may be seen before its parent has
// reported it, or be killed before it is seen at all (tree.go). Bytes are those that calls returned. A descriptor's
// target is looked up when a call begins, so descriptors that were duplicated, inherited, received or closed need no
// bookkeeping. Bytes are recorded for the wrong file only if a thread replaces a descriptor in the microseconds in
// which another thread uses it. Calls that move bytes in other ways are only counted (calls.go).
//
// The package is not a sandbox: a program can detect that it is traced, cannot trace its own children, and does not get
// the rights of set-user-ID programs unless the tracer is root. The kernel imposes these restrictions.
package ptrace
