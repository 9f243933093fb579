-- A glidein that takes over from another one waits for that one, whatever the clock says.
alter table glideins add column follows_id integer references glideins (id);

drop index glideins_live;
create index glideins_live on glideins (
	site_id,
	case when state = 'WAITING' and follows_id is null then coalesce(min(not_before_at_ms, coalesce(resubmit_deadline_at_ms, not_before_at_ms)), 0) else 0 end
) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');
