-- The speed of a glidein's hosts that its plan assumed, by which the estimates of tasks are divided; 0 means 1.
alter table glideins add column speed real not null default 0 check (speed >= 0 and speed <= 1);
