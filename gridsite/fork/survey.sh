# cpus: those that this process may use.
cpus() {
	nproc 2>/dev/null || getconf _NPROCESSORS_ONLN
}

# memory: MiB, the machine's, or less if a control group (version 2) of ours limits it; as internal/node counts.
memory() {
	all=$(sed -n 's/^MemTotal: *\([0-9][0-9]*\) kB$/\1/p' /proc/meminfo)
	[ -n "$all" ] || return 1
	least=$((all / 1024))
	group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
	while [ "$group" != /sys/fs ] && [ "$group" != / ] && [ -n "$group" ]; do
		limit=$(cat "$group/memory.max" 2>/dev/null)
		case $limit in
		'' | *[!0-9]*) ;;
		*) [ $((limit / 1048576)) -ge "$least" ] || least=$((limit / 1048576)) ;;
		esac
		group=${group%/*}
	done
	echo "$least"
}

unset OMP_NUM_THREADS OMP_THREAD_LIMIT
section cpus cpus
section memory memory
