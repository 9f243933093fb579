-- What tasks of each kind took, as owners keep it by name. A tombstone has no document: it may be megabytes.
create table profiles (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	sources       text not null check (json_type(sources) = 'array' and json_array_length(sources) > 0),
	runs          integer not null check (runs >= 0),
	kinds         integer not null check (kinds > 0),
	tasks         integer not null check (tasks > 0),
	digest        text not null check (length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	document      text check (json_type(document) = 'object'),
	state         text not null check (state in ('READY', 'DELETED')),
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint document_until_deleted check ((document is null) = (state = 'DELETED')),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index profiles_name on profiles (owner, name) where state <> 'DELETED';

-- The history of the new objects. SQLite changes a check only by making the table anew.
create table history_4 (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in ('site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror', 'plan', 'profile')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

insert into history_4 select * from history;
drop table history;
alter table history_4 rename to history;
create index history_object on history (object, object_id);
