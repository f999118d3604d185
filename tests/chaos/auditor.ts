import type pg from 'pg';

/**
 * A trigger in the database records which connection committed to which partition, and which host owned it. Processes are identified by the
 * `application_name` of their connections, so a commit of a host that does not own the partition is recorded whatever its outcome.
 */
export interface Auditor {
  /** Partitions without an owner, or with an owner that has ended. @param excluded the name of a process whose partitions count as without an owner */
  partitionsWithoutOwner(excluded?: string): Promise<number>;
  /** How many partitions a process owns. */
  ownedBy(name: string): Promise<number>;
  /** Commits that were accepted from a host that was not the owner, under a former epoch, or under the same commit number twice. */
  zombieCommits(): Promise<number>;
  commits(): Promise<number>;
  /** Commits that stored nothing, since the sender owned none of their partitions. @param name of one process; by default of all */
  rejected(name?: string): Promise<number>;
  /** Discards what was recorded so far. */
  forget(): Promise<void>;
  /** The events that the last appending statement of a process stored. */
  lastEventsOf(name: string): Promise<{ session_id: string; off: number }[]>;
}

const INSTALL = `
create schema if not exists chaos;
create table if not exists chaos.names (host_id text primary key, name text not null);
create table if not exists chaos.commits (p int, epoch bigint, commit_no bigint, owner text, name text, xact xid8, at timestamptz);
create or replace function chaos.name_host() returns trigger language plpgsql as $$ begin
  insert into chaos.names values (new.id, current_setting('application_name')) on conflict do nothing;
  return null;
end $$;
create or replace function chaos.see_commit() returns trigger language plpgsql as $$ begin
  insert into chaos.commits values (new.p, new.epoch, new.commit_no, new.owner, current_setting('application_name'), pg_current_xact_id(), clock_timestamp());
  return null;
end $$;
create table if not exists chaos.rejected (name text, at timestamptz);
create or replace function chaos.see_rejected() returns trigger language plpgsql as $$ begin
  if not exists (select from changed) and current_query() like '%commit_no = parts.commit_no + 1%' then
    insert into chaos.rejected values (current_setting('application_name'), clock_timestamp());
  end if;
  return null;
end $$;
create or replace trigger see_rejected after update on parts referencing new table as changed for each statement execute function chaos.see_rejected();
create or replace trigger name_host after insert on hosts for each row execute function chaos.name_host();
create or replace trigger see_commit after update on parts for each row when (new.commit_no <> old.commit_no) execute function chaos.see_commit();`;

/** Installs the trigger. Hosts have to be started after that, each with its own `application_name`. */
export async function openAuditor(database: pg.Pool): Promise<Auditor> {
  await database.query(INSTALL);
  const count = async (sql: string, parameters: unknown[] = []) => (await database.query<{ count: number }>(sql, parameters)).rows[0]?.count ?? 0;
  return {
    partitionsWithoutOwner: (excluded = '') =>
      count(
        `select count(*)::int as count from parts left join hosts on hosts.id = parts.owner left join chaos.names on names.host_id = parts.owner
         where hosts.id is null or names.name = $1`,
        [excluded],
      ),
    ownedBy: (name) => count('select count(*)::int as count from parts join chaos.names on names.host_id = parts.owner where names.name = $1', [name]),
    zombieCommits: () =>
      count(
        `select count(*)::int as count from (
           select commits.name is distinct from names.name or epoch < max(epoch) over earlier or commit_no <= max(commit_no) over earlier as is_zombie
           from chaos.commits left join chaos.names on names.host_id = commits.owner
           window earlier as (partition by p order by at rows between unbounded preceding and 1 preceding)) as seen
         where is_zombie`,
      ),
    rejected: (name) => count('select count(*)::int as count from chaos.rejected where name = coalesce($1, name)', [name ?? null]),
    commits: () => count('select count(*)::int as count from chaos.commits'),
    forget: async () => {
      await database.query('truncate chaos.commits, chaos.rejected');
    },
    lastEventsOf: async (name) => {
      const { rows } = await database.query<{ session_id: string; off: number }>(
        `select session_id, off::int from events where xmin = (
           select (max(xact::text::bigint) % 4294967296)::text::xid from chaos.commits where commits.name = $1)`,
        [name],
      );
      return rows;
    },
  };
}
