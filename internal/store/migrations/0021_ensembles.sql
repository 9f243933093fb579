-- Many workflows under one budget and one deadline.
create table ensembles (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	cluster_id    integer not null references clusters (id),
	goal          text not null check (json_type(goal) = 'object'),
	pilots        text not null check (json_type(pilots) = 'object'),
	choice        text not null check (json_type(choice) = 'object'),
	members       text not null check (json_type(members) = 'array' and json_array_length(members) > 0),
	files         text not null unique check (files <> ''),
	steps         integer not null check (steps >= 0),
	spent         text not null,
	state         text not null check (state in ('RUNNING', 'ENDING', 'ENDED', 'DELETED')),
	reason        text not null,
	created_at_ms integer not null,
	ended_at_ms   integer,
	updated_at_ms integer not null,
	constraint ended_iff_ended_at check ((state in ('RUNNING', 'ENDING')) = (ended_at_ms is null)),
	constraint times_in_order check (
		created_at_ms <= updated_at_ms and created_at_ms <= ended_at_ms and ended_at_ms <= updated_at_ms)
) strict;

-- Those that are carried out; the queries name the states in these very words.
create index ensembles_open on ensembles (id) where state in ('RUNNING', 'ENDING');

-- SQLite changes a check only by making the table anew.
create table history_6 (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in ('site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror', 'plan', 'profile', 'token', 'ensemble')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

insert into history_6 select * from history;
drop table history;
alter table history_6 rename to history;
create index history_object on history (object, object_id);
