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
