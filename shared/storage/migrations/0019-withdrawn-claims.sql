-- A cancelled run has claimed the call itself, so that no worker begins it. Releases before this one read such a row as a claim: the run waits for the outcome.
alter table claims add column withdrawn boolean not null default false;
