# poll.sh ROOT <TAGS: prints "queue", and JOBID STATE NAME|REASON of all the user's jobs that Slurm remembers; "jobs",
# and for each tag with a directory what that says; "end". The queue is asked first: a job that has left it has left
# its status.

exec 3<&0 </dev/null
slurm squeue -h -u "$me" -t all -o '%A %T %j|%r' || exit 1
echo queue
[ -z "$said" ] || say "$said"
echo jobs
while read -r tag <&3; do
	dir=$1/jobs/$tag
	control=$dir/.corral
	[ ! -d "$control" ] || tell_of
done
echo end
