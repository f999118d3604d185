-- Whether the publish of an open effect is still to be acknowledged. Releases before this one insert a row of `outbox` in its place, and do not acquire
-- the partitions of newer hosts.
alter table effects add column unpublished boolean not null default false;
