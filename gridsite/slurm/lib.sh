
# What the scripts of the slurm dialect share, after fork/lib.sh. They run on the head node, but for run.sh. A job's
# directory is one of the fork dialect's, on a file system that the nodes share; what differs in its $control:
#   leader     JOBID.PID BIRTH BOOT STARTED DEADLINE HOST of the batch script that won the right to start the job;
#              "unstarted" if that right was taken away
#   ended-by   also "site", when Slurm ended it and we had not asked for it
#   status     KILLED may also be "site", "preempted", "node" or "memory", and be followed by ":STATE", Slurm's own word
#   id         the first JOBID that sbatch returned
#   batch      the batch script; it runs run.sh, as run
# What the job cannot tell any more when it is gone, Slurm is asked for; nothing needs its accounting.

# settle is that of fork/lib.sh, with more ways to end, and for jobs that never started.
settle() {
	pid=unstarted
	load
	[ "$pid" != unstarted ] || started=-
	read -r code ended _ <"$control/ending"
	read -r by _ <"$control/ended-by"
	if [ "$code" = - ]; then
		ended=$(date +%s.%N)
		[ "$by" != - ] || by=disappeared
	fi
	echo "$started $ended $code $by" 1<>"$control/status.new"
}

# finished is over, also where a network file system remembers that there was no status: who changes a directory is told of
# what others changed in it.
finished() {
	over || {
		mkdir "$control/look"
		rmdir "$control/look" # also one that a killed script has left
		over
	} 2>/dev/null
}

# publish makes known what is in status.new: the job is over.
publish() {
	over || mv "$control/status.new" "$control/status" 2>/dev/null || over
}

# tell_of prints what the job's directory says: TAG JOBID STARTED RESULT..., with "-" for what is not known.
tell_of() {
	id=- pid=- started=-
	read -r id _ <"$control/id"
	if load; then
		if [ "$pid" = unstarted ]; then started=-; else id=${pid%%.*}; fi
	fi
	over || result=-
	echo "$tag $id $started" $result
}
