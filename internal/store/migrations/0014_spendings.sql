-- What attempts that are over have cost is added up once: before, every past attempt was read at each look at a plan and
-- at each reservation. The sums are for the terms that the site had then; where it has others, all is added up anew.
create table spendings (
	site_id   integer not null references sites (id),
	plan_id   integer not null check (plan_id >= 0), -- 0: of pilots that no plan has asked for
	used      integer not null check (used >= 0), -- millionths of the unit of the site's price
	billed    integer not null check (billed >= 0),
	used_ms   integer not null check (used_ms >= 0), -- of a cpu
	billed_ms integer not null check (billed_ms >= 0),
	primary key (site_id, plan_id)
) strict, without rowid;

create table spending_terms (
	site_id integer primary key references sites (id),
	price   text not null,
	billing text not null
) strict;

-- Whether an attempt is in the sum of its site.
alter table jobs add column summed integer not null default 0 check (summed = 0 or summed = 1 and kind = 'pilot' and state = 'ENDED');
create index jobs_unsummed on jobs (site_id) where kind = 'pilot' and started_at_ms is not null and summed = 0;
