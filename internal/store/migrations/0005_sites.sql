-- Sites far away: what runs their setup and cleanup jobs, options of their batch systems, limits, what a probe
-- found, and what keeps corrald from them. The column features is what is called a constraint elsewhere: SQL
-- has that word for itself.
alter table sites add column head_batch text not null default 'fork' check (head_batch <> '');
alter table sites add column queue text not null default '';
alter table sites add column account text not null default '';
alter table sites add column qos text not null default '';
alter table sites add column features text not null default '';
alter table sites add column site_options text check (json_type(site_options) = 'array');
alter table sites add column max_queued integer not null default 0 check (max_queued >= 0);
alter table sites add column max_running integer not null default 0 check (max_running >= 0);
alter table sites add column facts text check (json_type(facts) = 'object');
alter table sites add column login_needed integer not null default 0 check (login_needed in (0, 1));
alter table sites add column trouble text not null default '' check (trouble <> '' or login_needed = 0);
alter table sites add column trouble_at_ms integer check ((trouble = '') = (trouble_at_ms is null));

alter table clusters add column schedd_address text not null default '' check (schedd_address = '' or attached = 1);

alter table glideins add column gpus integer not null default 0 check (gpus >= 0);
alter table glideins add column queue text not null default '';
alter table glideins add column account text not null default '';
alter table glideins add column qos text not null default '';
alter table glideins add column features text not null default '';
alter table glideins add column site_options text check (json_type(site_options) = 'array');

alter table jobs add column node text not null default '' check (node = '' or (kind = 'pilot' and state = 'ENDED'));

-- The batch system's queue that an attempt was asked for: its wait is kept by it, whatever the site's is later.
alter table jobs add column queue text not null default '' check (queue = '' or kind = 'pilot');
