-- Owners whose account was suspended or ended. One that has no row is ACTIVE.
create table owners (
	id            integer primary key autoincrement,
	name          text not null unique check (name <> ''),
	state         text not null check (state in ('ACTIVE', 'SUSPENDED', 'ENDING', 'ENDED')),
	reason        text not null,
	moved_by      text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

-- The token with which another was made, and which takes it along when it is revoked.
alter table tokens add column parent_id integer references tokens (id);
create index tokens_parent on tokens (parent_id) where parent_id is not null;

-- SQLite changes a check only by making the table again.
create table history_7 (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in ('site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror', 'plan', 'profile', 'token', 'ensemble', 'owner')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

insert into history_7 select * from history;
drop table history;
alter table history_7 rename to history;
create index history_object on history (object, object_id);
