-- Which execution of an item has claimed a tool call, or counted the newest attempt of a delivery: a statement that is repeated since its acknowledgement was
-- lost finds what it has written. Releases before this one leave both as they are: null in a claim of theirs.
alter table claims add column claimant text;
alter table deliveries add column counted_by text;
