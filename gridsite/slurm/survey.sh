# -a: a partition that is hidden can be asked for by its name, too.
config() {
	soon scontrol show config | grep -E '^(AccountingStorageType|AccountingStorageEnforce|PrivateData|PriorityFlags) '
}

# maintenance prints what scontrol says of each reservation for maintenance, with times in seconds since 1970, and after
# it how many of its nodes each partition has, as sinfo's PARTITION|NODES.
maintenance() {
	out=$(
		SLURM_TIME_FORMAT=%s
		export SLURM_TIME_FORMAT
		soon scontrol -o show reservation
	) || return
	printf '%s\n' "$out" | grep -E ' Flags=([^ ]*,)?MAINT(,| )' | while IFS= read -r line; do
		printf '%s\n' "$line"
		nodes=$(printf '%s\n' "$line" | sed -n 's/.* Nodes=\([^ ]*\) .*/\1/p')
		[ "${nodes:-(null)}" = '(null)' ] || soon sinfo -a -h -n "$nodes" -o '%R|%D' || return
	done
}

# used prints, for each account and for the user in each, USER|ACCOUNT|PARTITION|PARENT|GrpTRESMins: limits, each with
# what was used of it in brackets. The controller alone knows both.
used() {
	out=$(soon scontrol -o show assoc_mgr flags=assoc) || return
	value='\([^ ]*\)'
	printf '%s\n' "$out" | sed -n "s/.* Account=$value UserName=$value Partition=$value .* ParentAccount=$value .* GrpTRESMins=$value .*/\\2|\\1|\\3|\\4|\\5/p" |
		grep -e '^|' -e "^$(id -un)(" || :
}

section version soon sinfo --version
section partitions soon scontrol -a -o show partition
section nodes soon sinfo -a -h -e -o '%R|%c|%m|%G|%D|%d'
section config config
section maintenance maintenance

# The books may be those of several clusters.
cluster=$(soon scontrol show config 2>/dev/null | sed -n 's/^ClusterName *= *//p')
set -- "user=$(id -un)" ${cluster:+"cluster=$cluster"}
section account soon sacctmgr -nP show user where "$@" format=DefaultAccount
section associations soon sacctmgr -nP show assoc where "$@" format=Account,Partition,MaxJobs,MaxSubmit,MaxWall,MaxTRES,QOS,DefaultQOS
section qos soon sacctmgr -nP show qos format=Name,Flags,MaxJobsPerUser,MaxSubmitJobsPerUser,MaxWall,MaxTRES
section used used
