-- Glideins that are alive, by when they stop waiting for nothing but a time: 0, or when they are wanted, or when their
-- resubmission is over.
drop index glideins_live;
create index glideins_live on glideins (
	site_id,
	case state when 'WAITING' then coalesce(min(not_before_at_ms, coalesce(resubmit_deadline_at_ms, not_before_at_ms)), 0) else 0 end
) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');
