-- Tokens of the API of a central corrald, by the digest of their text.
create table tokens (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	role          text not null check (role in ('user', 'administrator')),
	scopes        text check (json_type(scopes) = 'array'),
	grants        text check (json_type(grants) = 'array'),
	digest        text not null unique check (length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	state         text not null check (state in ('VALID', 'REVOKED')),
	reason        text not null,
	expires_at_ms integer,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index tokens_name on tokens (owner, name) where state <> 'REVOKED';

-- Names are each owner's own: what others call theirs is not told, not even by a conflict.
drop index sites_name;
create unique index sites_name on sites (owner, name) where state <> 'DELETED';
drop index clusters_name;
create unique index clusters_name on clusters (owner, name) where state <> 'DELETED';

-- Lists of what is one's own.
create index glideins_owner on glideins (owner);
create index runs_owner on runs (owner);

-- The history of the new objects. SQLite changes a check only by making the table anew.
create table history_5 (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in ('site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror', 'plan', 'profile', 'token')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

insert into history_5 select * from history;
drop table history;
alter table history_5 rename to history;
create index history_object on history (object, object_id);
