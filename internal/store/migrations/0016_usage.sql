-- What tasks took of the pilots that ran them: for each run, attempt and hour. The rows of a run follow from its
-- journal, and are replaced by what that says, never added to: so a crash neither loses nor doubles anything.
create table usage (
	run_id  integer not null references runs (id),
	job_id  integer not null check (job_id >= 0), -- an attempt; 0: of cpus that no pilot brought
	hour    integer not null check (hour >= 0), -- since 1970 UTC
	used_ms integer not null check (used_ms >= 0), -- of a cpu
	lost_ms integer not null check (lost_ms >= 0), -- that ran, and had to run again
	primary key (run_id, job_id, hour)
) strict, without rowid;

create index usage_hour on usage (hour);
