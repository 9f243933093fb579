-- Until when it is forgotten what attempts lost on a node of a site: a worker came to life there, or somebody has
-- forgiven the node. Names are without their domains.
create table nodes (
	site_id       integer not null references sites (id),
	name          text not null check (name <> '' and instr(name, '.') = 0),
	cleared_at_ms integer not null,
	primary key (site_id, name)
) strict, without rowid;
