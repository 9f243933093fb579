-- Plans of the provisioning planner. A glidein that a plan asked for names it.
create table plans (
	id            integer primary key autoincrement,
	owner         text not null check (owner <> ''),
	cluster_id    integer not null references clusters (id),
	workflow      text not null,
	digest        text not null check (length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	document      text not null check (json_type(document) = 'object'),
	state         text not null check (state in ('INFEASIBLE', 'READY', 'PROVISIONED', 'RELEASED', 'DELETED')),
	reason        text not null,
	created_at_ms integer not null,
	began_at_ms   integer,
	updated_at_ms integer not null,
	constraint began_iff_provisioned check (state <> 'PROVISIONED' or began_at_ms is not null),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

-- The history of the new objects. SQLite changes a check only by making the table anew.
create table history_3 (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in ('site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror', 'plan')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

insert into history_3 select * from history;
drop table history;
alter table history_3 rename to history;
create index history_object on history (object, object_id);
