-- Clusters that are HTCondor pools: what they are made of, their life, and the tokens of their workers.

-- A table's checks cannot be changed, so it is made anew. What refers to it is checked at the commit.
pragma defer_foreign_keys = on;
create temp table old_clusters as select * from clusters;
delete from clusters;
drop table clusters;

create table clusters (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	kind          text not null check (kind in ('embedded', 'condor')),
	attached      integer not null check (attached in (0, 1)),
	collector     text not null,
	schedd        text not null,
	htcondor      text not null,
	version       text not null,
	state         text not null check (state in ('STARTING', 'READY', 'STOPPING', 'STOPPED', 'REMOVING', 'DELETED', 'FAILED')),
	reason        text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint pool_only_if_condor check (kind = 'condor' or (attached = 0 and collector || schedd || htcondor || version = '')),
	constraint embedded_has_no_daemons check (kind = 'condor' or state in ('READY', 'REMOVING', 'DELETED')),
	constraint schedd_only_if_attached check (attached = 1 or schedd = ''),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

insert into clusters
	select id, name, owner, kind, 0, '', '', '', '', state, reason, created_at_ms, updated_at_ms from old_clusters;
drop table old_clusters;
create unique index clusters_name on clusters (name) where state <> 'DELETED';

alter table glideins add column queue_timeout_ms integer not null default 604800000 check (queue_timeout_ms > 0);
alter table glideins add column broker text not null default '' check (broker in ('', 'auto', 'none', 'ccb', 'relay'));
alter table glideins add column ccb text check (json_type(ccb) = 'array');
alter table glideins add column slots text not null default '' check (slots in ('', 'partitionable', 'static'));

-- '' is the site's own package.
alter table jobs add column package_digest text not null default ''
	check (package_digest = '' or (kind = 'setup' and length(package_digest) = 71 and package_digest glob 'sha256:*'));

create table pool_tokens (
	id            text not null primary key check (id <> ''),
	cluster_id    integer not null references clusters (id),
	job_id        integer not null references jobs (id),
	ends_at_ms    integer not null,
	revoked_at_ms integer
) strict, without rowid;

create index pool_tokens_valid on pool_tokens (cluster_id) where revoked_at_ms is null;
create index pool_tokens_job on pool_tokens (job_id);
