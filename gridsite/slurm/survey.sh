# -a: a partition that is hidden can be asked for by its name, too.
config() {
	soon scontrol show config | grep -E '^(AccountingStorageType|AccountingStorageEnforce) '
}

section version soon sinfo --version
section partitions soon scontrol -a -o show partition
section nodes soon sinfo -a -h -e -o '%R|%c|%m|%G|%D'
section config config

# The books may be those of several clusters.
cluster=$(soon scontrol show config 2>/dev/null | sed -n 's/^ClusterName *= *//p')
set -- "user=$(id -un)" ${cluster:+"cluster=$cluster"}
section account soon sacctmgr -nP show user where "$@" format=DefaultAccount
section associations soon sacctmgr -nP show assoc where "$@" format=Account,Partition,MaxJobs,MaxSubmit,MaxWall,MaxTRES,QOS,DefaultQOS
section qos soon sacctmgr -nP show qos format=Name,Flags,MaxJobsPerUser,MaxSubmitJobsPerUser,MaxWall,MaxTRES
