-- Events that a caller has deleted: the rows keep their offsets, and every reader leaves them out.
alter table events add column deleted_at timestamptz;
