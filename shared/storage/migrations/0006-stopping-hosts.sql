-- Since when a host is stopping. Null: it stays, or it is of a release that does not say.
alter table hosts add column stopping_since timestamptz;
