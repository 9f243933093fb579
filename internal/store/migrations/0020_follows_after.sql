-- When a glidein that takes over from another one is wanted counts from that one's start.
alter table glideins add column follows_after_ms integer not null default 0 check (follows_after_ms >= 0);
alter table glideins add column follows_wait_ms integer not null default 0 check (follows_wait_ms >= 0);
