-- Which hosts attempts do without: a list, where there was the one node on which an attempt had failed; and why a
-- site's relay does not run.
alter table jobs add column lost text check (lost is null or json_type(lost) = 'array' and kind = 'pilot');
update jobs set lost = json_array(json_object('host', 0, 'node', node, 'reason', reason, 'at', strftime('%Y-%m-%dT%H:%M:%fZ', ended_at_ms / 1000.0, 'unixepoch')))
	where node <> '';
alter table jobs drop column node;
create index jobs_lost on jobs (site_id, updated_at_ms) where lost is not null;

alter table sites add column relay_trouble text not null default '';

-- The waits in the queues of a site are looked for among all attempts that it ever had.
create index jobs_waits on jobs (site_id, submitted_at_ms) where kind = 'pilot' and submitted_at_ms is not null;
