-- What is stored names ids, never names: a name may come to mean another site, or another owner's.
delete from scales
where not exists (
	select 1
	from json_each(scales.sites) as named
	join sites on sites.owner = scales.owner and sites.name = named.value and sites.state <> 'DELETED');

update scales
set sites = (
	select json_group_array(sites.id order by named.key)
	from json_each(scales.sites) as named
	join sites on sites.owner = scales.owner and sites.name = named.value and sites.state <> 'DELETED');

alter table plans add column sites text check (json_type(sites) = 'object');

update plans
set sites = (
	select json_group_object(sites.name, sites.id)
	from sites
	where sites.owner = plans.owner and sites.state <> 'DELETED');

update ensembles
set pilots = json_set(pilots, '$.site_id', coalesce((
	select max(sites.id)
	from sites
	where sites.owner = ensembles.owner and sites.name = pilots ->> '$.site' and sites.state <> 'DELETED'), 0));

-- The SHA-256, in hex, of the secret that the pilot with the attempt's lease has made and gives to its workers.
alter table jobs add column session_digest text not null default '' check (session_digest = '' or lease_holder <> '');

-- What is counted of an owner whenever one more is asked for. The queries name the states in these very words. Sites,
-- clusters, profiles and tokens are counted by the indexes of their names.
create index glideins_open on glideins (owner, state) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');
create index runs_kept on runs (owner, state) where state <> 'DELETED';
create index plans_kept on plans (owner, state) where state <> 'DELETED';
create index ensembles_kept on ensembles (owner, state) where state <> 'DELETED';

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
