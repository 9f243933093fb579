-- Jobs that look at a site and are ended by who asked for them: none outlives its row for long.
create table probes (
	tag     text not null primary key check (tag <> ''),
	site_id integer not null references sites (id)
) strict, without rowid;

create index probes_site on probes (site_id);
