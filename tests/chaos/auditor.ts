import type pg from 'pg';

/**
 * Looks over the database's shoulder: which connection committed to which partition, and whose it was. Every process is told apart by the
 * name of its connections, so a commit by somebody who does not own the partition is seen whatever came of it.
 */
export interface Auditor {
  /** Partitions that have no owner, or one that is gone. @param excluded the name of a process whose partitions count as without an owner */
  partitionsWithoutOwner(excluded?: string): Promise<number>;
  /** How many partitions a process owns. */
  ownedBy(name: string): Promise<number>;
  /** Commits that were accepted from somebody who was not the owner, or under an epoch that was over, or under a number twice. */
  zombieCommits(): Promise<number>;
  commits(): Promise<number>;
  /** Commits that stored nothing, since none of their partitions belonged to who sent them. @param name of one process; by default of all */
  rejected(name?: string): Promise<number>;
  /** Nothing that was seen so far counts any more. */
  forget(): Promise<void>;
  /** The events of the last statement by which a process stored any. */
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

/** Installs itself; hosts have to be started after that, each with connections of a name of its own. */
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
