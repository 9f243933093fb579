-- What the pilots of plans may cost: each its own, so that what one does not use is free at its end, with nothing to
-- settle. What a plan reserved at a site before is divided evenly among its pilots there.
create table reservations_2 (
	glidein_id integer primary key references glideins (id),
	amount     integer not null check (amount >= 0) -- millionths of the unit of the site's price
) strict;

insert into reservations_2
select glideins.id, amount / count(*) over (partition by plan_id, reservations.site_id)
from reservations
join glideins on glideins.site_id = reservations.site_id and json_extract(labels, '$.plan') = cast(plan_id as text);

drop table reservations;
alter table reservations_2 rename to reservations;

-- Plans that are under way are looked at once a second, each with its glideins and runs, however much there is of the
-- past, and with what its sites' pilots have cost: of that every past attempt is read, from the last index.
create index plans_provisioned on plans (id) where state = 'PROVISIONED';
create index glideins_plan on glideins (json_extract(labels, '$.plan')) where json_extract(labels, '$.plan') is not null;
create index runs_plan on runs (json_extract(labels, '$.plan')) where json_extract(labels, '$.plan') is not null;
create index jobs_holdings on jobs (site_id, glidein_id, started_at_ms, ended_at_ms) where kind = 'pilot' and started_at_ms is not null;
