-- Worker packages, mirrors, and which mirror says that it has which package.

create table packages (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	what          text not null check (what <> ''),
	version       text not null check (version <> ''),
	os            text not null check (os <> ''),
	arch          text not null check (arch <> ''),
	libc          text not null check (libc <> ''),
	digest        text not null check (length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	size_bytes    integer not null check (size_bytes > 0),
	key           text not null check (key <> ''),
	signature     text not null check (signature <> ''),
	state         text not null check (state in ('READY', 'DELETED')),
	reason        text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index packages_digest on packages (digest) where state <> 'DELETED';

create table mirrors (
	id             integer primary key autoincrement,
	name           text not null check (name <> ''),
	owner          text not null check (owner <> ''),
	url            text not null check (url <> ''),
	state          text not null check (state in ('READY', 'DELETED')),
	reason         text not null,
	successes      real not null check (successes >= 0), -- decayed
	failures       real not null check (failures >= 0),  -- decayed
	bytes_per_s    real not null check (bytes_per_s >= 0),
	measured_at_ms integer,
	checked_at_ms  integer,
	created_at_ms  integer not null,
	updated_at_ms  integer not null,
	constraint measured_iff_tried check ((measured_at_ms is null) = (successes + failures = 0)),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index mirrors_name on mirrors (name) where state <> 'DELETED';
create unique index mirrors_url on mirrors (url) where state <> 'DELETED';

-- Not an object: what the last look at the mirror's index said, with neither history nor tombstone.
create table replicas (
	mirror_id  integer not null references mirrors (id),
	package_id integer not null references packages (id),
	primary key (mirror_id, package_id)
) strict, without rowid;

create index replicas_package on replicas (package_id);

-- The history of the new objects. SQLite changes a check only by making the table anew.
create table history_2 (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in ('site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

insert into history_2 select * from history;
drop table history;
alter table history_2 rename to history;
create index history_object on history (object, object_id);
