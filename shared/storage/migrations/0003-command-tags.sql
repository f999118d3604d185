-- From when on commands without a tag are refused (docs/adr/0025). One row. A new deployment has no processes of a release before, which
-- send none; where hosts have run before, a day is left in which those are replaced.
create table command_tags (
  required_from timestamptz not null
);
insert into command_tags (required_from)
  select case when exists (select 1 from parts) then now() + interval '1 day' else to_timestamp(0) end;
