-- The SHA-256, in hex, of the secret that the pilot with the attempt's lease has made and gives to its workers.
alter table jobs add column session_digest text not null default '' check (session_digest = '' or lease_holder <> '');
