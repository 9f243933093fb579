# -a: a partition that is hidden can be asked for by its name, too.
config() {
	soon scontrol show config | grep -E '^(AccountingStorageType|AccountingStorageEnforce) '
}

section version soon sinfo --version
section partitions soon scontrol -a -o show partition
section nodes soon sinfo -a -h -e -o '%R|%c|%m|%G|%D'
section config config
section account soon sacctmgr -nP show user "$(id -un)" format=DefaultAccount
section associations soon sacctmgr -nP show assoc where user="$(id -un)" format=Account,Partition,MaxJobs,MaxSubmit,MaxWall,MaxTRES,QOS,DefaultQOS
section qos soon sacctmgr -nP show qos format=Name,Flags,MaxJobsPerUser,MaxSubmitJobsPerUser,MaxWall,MaxTRES
