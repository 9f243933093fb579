
# At many sites only login shells find Slurm, by /etc/profile or by a file of the user's.
for shell in "${SHELL:-sh}" sh; do
	! command -v scontrol >/dev/null || break
	login=$("$shell" -lc 'echo "=$PATH=$SLURM_CONF="' </dev/null 2>/dev/null | sed -n 's/^=\(.*=.*\)=$/\1/p' | tail -n 1)
	[ -z "$login" ] || PATH=${login%=*}
	[ -z "${login##*=}" ] || export SLURM_CONF="${login##*=}"
done
export PATH
