-- What a site charges, and how much may be spent there.
alter table sites add column price text not null default '';
alter table sites add column billing text not null default '';
alter table sites add column allocation text not null default '' constraint allocation_has_a_unit check (allocation = '' or allocation glob '*[0-9]*[a-zA-Z]');

-- What a plan that is provisioned may cost at a site, in millionths of the unit of the site's price.
create table reservations (
	plan_id integer not null references plans (id),
	site_id integer not null references sites (id),
	amount  integer not null check (amount >= 0),
	primary key (plan_id, site_id)
) strict;
