-- What has to happen before a job that failed in a way that may pass is worth another try. Of jobs that failed before
-- nothing is known but that it may pass.
alter table jobs add column failure text not null default ''
	check (failure = '' or failure in ('quota', 'authentication') and transient = 1);
