-- Clusters whose workers follow what waits in their queue. The id is the cluster's: it has one of these at most.
create table scales (
	id            integer primary key references clusters (id),
	owner         text not null check (owner <> ''),
	sites         text not null check (json_type(sites) = 'array' and json_array_length(sites) > 0),
	min_cpus      integer not null check (min_cpus >= 0),
	max_cpus      integer not null check (max_cpus >= min_cpus),
	cpus          integer not null check (cpus between 1 and max_cpus),
	walltime_ms   integer not null check (walltime_ms > 0),
	idle_ms       integer not null check (idle_ms > 0),
	report        text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;
