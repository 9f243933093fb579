# lost.sh ROOT <TAG JOBID: for jobs that left no status and are not in the queue, or have ended there. Slurm's last
# word on them becomes their status, unless the queue has them after all. Prints "jobs", what their directories
# say then, and "end".

exec 3<&0 </dev/null
root=$1
pairs=$(cat <&3)
ids=$(echo "$pairs" | sed 's/.* //' | grep '^[0-9]' | sort -u | paste -s -d , -)
queue= states=

# soon runs a command that others do not wait for.
soon() {
	if command -v timeout >/dev/null; then timeout 20 "$@"; else "$@"; fi
}

if [ -n "$ids" ]; then
	slurm squeue -h -u "$me" -t all -o '%A %T %B' || exit 1
	queue=$said states=$said
	# The queue forgets jobs after some minutes; accounting, where there is any, does not. It may never learn of an end, and
	# it may not answer.
	! command -v sacct >/dev/null || states="$states
$(soon sacct -n -P -X -j "$ids" -o JobIDRaw,State,NodeList 2>/dev/null | sed 's/|None assigned$/|/; s/|/ /g')"
fi

# word says how a job in this state ended, if it could not say so itself.
word() {
	case $1 in
	TIMEOUT | DEADLINE) word=walltime ;;
	PREEMPTED | REVOKED) word=preempted ;;
	NODE_FAIL | BOOT_FAIL) word=node ;;
	OUT_OF_MEMORY) word=memory ;;
	CANCELLED) word=site ;;
	*) word=disappeared ;;
	esac
}

# started_before says whether a job that waits has run, and was put back into the queue in spite of --no-requeue. It is
# not to run again.
started_before() {
	case $state in
	PENDING* | CONFIGURING* | EXPEDITING* | REQUEUE* | SPECIAL_EXIT* | RESV_DEL_HOLD*) load && [ "${pid%%.*}" = "$id" ] ;;
	*) return 1 ;;
	esac
}

bury() {
	line=$(say "$states" | grep "^$id " | head -n 1)
	state=${line#* }
	if started_before; then
		slurm scancel "$id" || return 0
		state=PREEMPTED
	elif [ -n "$(say "$queue" | grep "^$id " | unended)" ]; then
		return 0
	fi
	word "${state%% *}"
	read -r by _ <"$control/ended-by"
	if [ "$by" = - ] || { [ "$by" = site ] && [ "$word" != disappeared ]; }; then
		[ "$word" = disappeared ] || word=$word:${state%% *}
		echo "$word" 1<>"$control/ended-by"
	fi
	# A node that does not see the directory cannot say so, nor one that failed before the job had begun there.
	case $word in
	disappeared | node:*) [ -e "$dir/node" ] || echo "${state##* }" 1<>"$dir/node" ;;
	esac
	settle
	publish
}

echo jobs
echo "$pairs" | while read -r tag id; do
	dir=$root/jobs/$tag
	control=$dir/.corral
	[ -d "$control" ] || continue
	finished || bury
	tell_of
done
echo end
