#!/usr/bin/env bash
# Records what a real Slurm with accounting prints of jobs of all kinds: live.txt and end.txt beside this script.
#
#   NODES=1 CPUS=2 ACCOUNTING=1 scripts/slurm start DIR && internal/shim/slurm/testdata/scene.sh DIR
#
# It takes two minutes, most of them for a job that runs into its time limit. DIR is to be new: jobs count from 1.
set -u
cd "$(dirname "$0")"
here=$PWD
# shellcheck source=/dev/null
. "$1/env"
export TZ=UTC LC_ALL=C
mkdir /tmp/w /tmp/w/out || exit 1 # the recorded paths are below it
scancel -u root; cd /tmp/w
node=$(scontrol show hostnames $(sed -n 's/^NodeName=\(p[^ ]*\) .*/\1/p' "$SLURM_CONF"))
ok=$(sbatch --parsable -J done --comment "rule_a wildcards" --wrap true)
seven=$(sbatch --parsable -J seven --wrap 'exit 7')
killed=$(sbatch --parsable -J killed --wrap 'kill -9 $$')
cat > script.sh <<'S'
#!/bin/sh
#SBATCH -J "two words"
#SBATCH -o %x-%j.log -e err.%j
#SBATCH --mem=1500 -t 1:30
#SBATCH --signal=B:USR2@30
exec sleep 1
S
named=$(sbatch --parsable script.sh a 'b c')
long=$(sbatch --parsable -J a-very-long-name-of-a-job-that-is-cut-anywhere -c 2 --mem-per-cpu=200 --no-requeue -A corral --export=ALL --wrap 'sleep 1')
while [ -n "$(squeue -h -o %i)" ]; do sleep 0.2; done
nodefail=$(sbatch --parsable -J nodefail --no-requeue --wrap 'sleep 100')
while [ "$(squeue -h -j $nodefail -o %t)" != R ]; do sleep 0.2; done
scontrol update nodename=$node state=down reason=test; sleep 1; scontrol update nodename=$node state=resume
while [ -z "$(sinfo -h -p normal -t idle -o %N)" ]; do sleep 0.2; done
cancelled=$(sbatch --parsable -J cancelled --wrap 'sleep 100')
never=$(sbatch --parsable -J never -d afterok:$seven --wrap 'true')
array=$(sbatch --parsable -J array --array=1-9:2 --wrap '[ $SLURM_ARRAY_TASK_ID = 3 ] && exit 3; true')
while [ "$(squeue -h -j $cancelled -o %t)" != R ]; do sleep 0.2; done
scancel $cancelled
dropped=$(sbatch --parsable -J dropped -H --wrap 'true'); sleep 1; scancel $dropped
while [ -n "$(squeue -h -j $array -o %i)" ]; do sleep 0.5; done
# live ones
timeout=$(sbatch --parsable -J timeout -t 1 --wrap 'sleep 1000')
sleeper=$(sbatch --parsable -J sleeper --mem=1G --wrap 'sleep 1000')
while [ "$(squeue -h -j $sleeper -o %t)" != R ]; do sleep 0.2; done
array2=$(sbatch --parsable -J waiting --array=100-120:4,333 -o 'out/%A_%a' --wrap 'true')
array3=$(sbatch --parsable -J waiting --array=0-3,7 --wrap 'true')
dep=$(sbatch --parsable -J after -d afterok:$sleeper --wrap 'true')
dep2=$(sbatch --parsable -J after2 -d "afterany:$sleeper:$timeout?afternotok:${array2}_104" --wrap 'true')
single=$(sbatch --parsable -J after2 -d singleton -c2 -t 0-23 --wrap 'true')
sleep 6
record() { while IFS= read -r c; do echo "@ $(date +%s)"; echo "\$ $c"; eval "$c" 2>&1; done > "$here/$1" ; }
all="$ok $seven $killed $named $long $nodefail $cancelled $never $array $dropped $timeout $sleeper $array2 $array3 $dep $dep2 $single"
ids=$(echo $all | tr ' ' ,)
commands() {
cat <<C
squeue -h -r -t all -S i -o '%A|%F|%K|%j|%u|%U|%g|%a|%P|%k|%V|%S|%e|%T|%r|%N|%l|%m|%C|%o|%Z|%E|%y|%M|%Q'
sacct -P -j $ids -o JobIDRaw,JobID,Submit,Eligible,Start,End,State,ExitCode,SubmitLine,GID
squeue
squeue -r
squeue -l
squeue -t all -S i
squeue --noheader -o '%i %t' -t all -u root -S i
squeue --noheader -o '%i %t' -t all -p normal -u root -S i
squeue -h -j $ok,$array,$sleeper,$array2 -t all -S i
squeue -j ${array2}_104,${array3}_[1-2] -r
squeue -j ${array2}_104
squeue -h -t PD -o '%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R'
squeue -n after,after2
squeue -n nosuch
squeue --me -o '%A %T'
squeue -o '%i|%20j|%.30j|%T|%8T|%.2t|%S|%e|%L|%l|%V|%m|%C|%Z|%E|%k|%r'
squeue -o '%a|%B|%c|%d|%f|%g|%G|%h|%H|%I|%n|%N|%o|%q|%Q|%s|%u|%U|%v|%w|%W|%x|%X|%y|%Y|%z'
squeue -t running,pending -o '%F_%K %r'
squeue -h -t F,CA,CD,NF -S i -o '%i %r %R %N %S %e %M %L'
squeue -t F,CA -S i -O JobID,JobArrayID,Name,State,Reason,exit_code
squeue -O 'jobid:8,name:30,statecompact,timeused:.12,username:10,account,partition,nodelist,submittime,starttime'
squeue -O arrayjobid,arraytaskid,batchhost,comment,dependency,endtime,groupid,groupname,maxcpus,mincpus,minmemory,nice,numcpus,numnodes,numtasks,prioritylong,qos,reasonlist,restartcnt,stdout,stderr,stdin,timeleft,timelimit,tres-alloc,userid,workdir,command
squeue -o '%18i%t' -S i
squeue -h -S -i -o %i
squeue -h -o '%j%%%i x' -j $sleeper
sacct
sacct -X
sacct -n -X
sacct -p
sacct -j $dep,$never -X
sacct -P -n --format=JobIdRaw,State -j $ok,$killed,$array,$sleeper
sacct -P -n --format=JobIdRaw,State -j $array2
sacct -X --parsable2 --clusters all --noheader --format=JobIdRaw,State --starttime 2026-11-20T00:00 --endtime now --name done
sacct -X --parsable2 --noheader --format=JobIdRaw,State --starttime now-2days --endtime now --name 'two words,after'
sacct -nu root -o Account%20
sacct -j $seven,$named,$long --format=JobID,JobName%30,State%20,ExitCode,Elapsed,Start,End,NodeList%-20,AllocCPUS,ReqMem,Timelimit
sacct -j $killed -o JobID%-15,User,MaxRSS,DerivedExitCode,NTasks,WorkDir%20,Submit
sacct -P -j $killed,$cancelled,$long -o jobid,jobidraw,jobname,user,uid,group,gid,account,partition,qos,comment,submit,eligible,start,end,state,reason,exitcode,nodelist,timelimitraw,reqmem,reqcpus,ncpus,alloccpus,nnodes,reqnodes,allocnodes,ntasks,workdir,submitline,elapsed,elapsedraw,derivedexitcode,cluster,averss,maxvmsize,cputime,cputimeraw,totalcpu,systemcpu,usercpu,suspended,reserved,timelimit,maxdiskread,consumedenergy,constraints,alloctres,reqtres,tresusageintot,layout,blockid,container,admincomment,systemcomment,mcslabel,resvcpu,wckey
sacct -s F,TO -X -o jobid,state -S 2026-11-20
sacct -s F,TO,CA,NF -X -o jobid,state -S 2026-11-20 -E now
sacct -s PD -X -o jobid,state
sacct -X -b
sacct -b -j $array
sacct -j ${array}_3 -n -P -o JobID,State,ExitCode
sacct -j ${array2}_104 -n -P -o JobID,State,ExitCode
sacct -j 99999 -n
sacct -X -o jobid,elapsed,cputime,cputimeraw,elapsedraw,timelimit,nnodes,ncpus,alloctres%50,reqtres%50 -j $ok,$seven,$timeout,$single
sinfo -p normal
sinfo -h -p normal
sinfo -h -o '%P %a %l %D %t %N' -p normal
sinfo -p normal -o '%9P|%.5a|%T|%c|%m|%z|%C|%A|%F|%G|%R|%d|%w|%r|%s|%h|%E|%g|%B|%N|%L|%p|%S|%X|%Y|%Z|%l'
sinfo -N -p normal
sinfo -s -p normal
sinfo -l -p normal
sinfo -N -l -p normal
sinfo -p nosuch
C
for j in $ok $killed $named $nodefail $cancelled $never $dep $timeout $sleeper $extra; do echo "scontrol show jobid -dd $j"; done
echo "scontrol show job $sleeper"
echo "scontrol -o show job $sleeper"
[ -z "$extra" ] || echo "scontrol show job ${array2}_104"
echo "sacctmgr -n -s list user"
echo "sacctmgr -s list user"
echo "sacctmgr list user"
echo "sacctmgr -n -s list user root format=account%20"
echo "sacctmgr -n -s -P list user root"
echo "squeue -j 1,99999 -h -t all"
echo "scontrol show hostnames 'n[1-3,05-07],x'"
}
extra=$array2; commands | record live.txt
scancel $array3
while [ "$(squeue -h -t all -j $timeout -o %t)" != TO ]; do sleep 1; done
scancel $sleeper
while [ -n "$(squeue -h -t R,CG -o %i)" ]; do sleep 0.5; done; sleep 10
extra=; commands | record end.txt
echo all done
