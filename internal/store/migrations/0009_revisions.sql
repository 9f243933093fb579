-- Plans that are revised while their run goes on, and their revisions.
alter table plans add column auto integer not null default 0 check (auto in (0, 1));

create table plan_revisions (
	id       integer primary key autoincrement,
	plan_id  integer not null references plans (id),
	number   integer not null check (number > 0),
	at_ms    integer not null,
	document text not null check (json_type(document) = 'object'),
	unique (plan_id, number)
) strict;
