import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { CommandLog, LogPosition, ReadOptions, StoredCommand, Subscription } from '../bus.ts';
import { PARTITION_COUNT } from '../partition.ts';
import { hasFingerprint } from '../position-fingerprint.ts';
import { CommandReader } from './command-reader.ts';
import { DEDUPE_WINDOW_MS, DedupeWindow } from './dedupe-window.ts';
import { GroupCommit } from './group-commit.ts';
import { isBelowCapacity } from './limits.ts';
import { fromStoredText, toStoredText } from './stored-text.ts';
import type { Bounded, Closable, ComponentDeps } from './types.ts';
import { vacuumer } from './vacuum.ts';

/** One commit of an actor host takes as many. */
const DEFAULT_MAX_BATCH = 128;
/** Limits of one page: short, since the database runs on our event loop. */
const PAGE_ROWS = 256;
const PAGE_BYTES = 4 * 1024 * 1024;
/** Sequences per statement of a purge. */
const PURGE_STEP = 5_000;

interface Append {
  partition: number;
  command: StoredCommand;
  sizeBytes: number;
}

/** A message id in the dedupe window. */
interface Appended {
  sequence: number;
  /** Null once it is stored. */
  stored: Promise<void> | null;
}

interface LogState {
  created: string;
  first: number;
  last: number;
  sizeBytes: number;
  lastOf: Map<number, number>;
}

/** The command log as one table. Readers get new commands from memory, in the tick that learns of their commit. */
export async function openCommandLog(deps: ComponentDeps): Promise<CommandLog & Bounded & Closable> {
  const state = await loadState(deps);
  const log = new MemoryCommandLog(deps, state);
  await log.recall();
  return log;
}

class MemoryCommandLog implements CommandLog, Bounded, Closable {
  readonly #deps: ComponentDeps;
  readonly #state: LogState;
  /** Sequences of a failed statement are not reused. */
  #assigned: number;
  readonly #seen: DedupeWindow<Appended>;
  readonly #commit: GroupCommit<Append>;
  readonly #readers = new Map<number, Set<CommandReader>>();
  readonly #vacuum: (deletedRows: number) => Promise<void>;
  #closing: 'no' | 'readers' | 'all' = 'no';

  constructor(deps: ComponentDeps, state: LogState) {
    this.#deps = deps;
    this.#state = state;
    this.#assigned = state.last;
    this.#seen = new DedupeWindow(deps.clock);
    this.#commit = new GroupCommit({ flush: (appends) => this.#flush(appends), sizeOf: ({ sizeBytes }) => sizeBytes });
    this.#vacuum = vacuumer(deps, 'bus_log');
  }

  /** Refills the dedupe window from the table; ids of purged commands are forgotten. */
  async recall(): Promise<void> {
    const { rows } = await this.#deps.database.query<{ sequence: number; message_id: string; stored_at_ms: number }>(
      'select sequence, message_id, stored_at_ms from bus_log where stored_at_ms > $1 order by sequence',
      [this.#deps.clock.nowMs() - DEDUPE_WINDOW_MS],
    );
    for (const row of rows) this.#seen.add(fromStoredText(row.message_id), { sequence: row.sequence, stored: null }, row.stored_at_ms);
  }

  async append(partition: number, messageId: string, body: string): Promise<{ sequence: number; duplicate: boolean }> {
    this.#assertOpen();
    assertPartition(partition);
    const earlier = this.#seen.find(messageId);
    if (earlier !== null) {
      // The first may be in flight: the repeat resolves or fails with it.
      if (earlier.stored !== null) await earlier.stored;
      return { sequence: earlier.sequence, duplicate: true };
    }
    this.#commit.assertCapacity();
    if (this.#state.sizeBytes > this.#deps.limits.logBytes) throw new SwitchyardError('bus.full', 'the command log is full');
    this.#assigned += 1;
    const sequence = this.#assigned;
    const command = { sequence, messageId, body, storedAtMs: this.#deps.clock.nowMs() };
    const stored = this.#commit.add({ partition, command, sizeBytes: Buffer.byteLength(body) });
    const seen: Appended = { sequence, stored };
    this.#seen.add(messageId, seen);
    try {
      await stored;
    } catch (error) {
      this.#seen.delete(messageId);
      throw error;
    }
    seen.stored = null;
    return { sequence, duplicate: false };
  }

  read(
    partition: number,
    after: LogPosition,
    handler: (commands: StoredCommand[]) => Promise<void>,
    { maxBatch = DEFAULT_MAX_BATCH, onRestart = () => {} }: ReadOptions = {},
  ): Subscription {
    if (this.#closing !== 'no') throw closed();
    assertPartition(partition);
    const readers = this.#readers.get(partition) ?? new Set();
    this.#readers.set(partition, readers);
    const reader = new CommandReader({
      partition,
      after,
      maxBatch,
      handler,
      onRestart,
      contains: (position) => this.#contains(position),
      lastOfPartition: () => this.#state.lastOf.get(partition) ?? 0,
      readPage: (after, limit) => this.#readPage(partition, after, Math.min(limit, PAGE_ROWS)),
      log: this.#deps.log,
    });
    readers.add(reader);
    return {
      stop: () => {
        readers.delete(reader);
        return reader.stop();
      },
    };
  }

  async at(sequence: number): Promise<StoredCommand | null> {
    this.#assertOpen();
    return this.#find(sequence);
  }

  async lastOf(partition: number): Promise<number> {
    this.#assertOpen();
    assertPartition(partition);
    const last = this.#state.lastOf.get(partition) ?? 0;
    return last >= this.#state.first ? last : 0;
  }

  async state(): Promise<{ created: string; firstSequence: number; lastSequence: number }> {
    this.#assertOpen();
    return { created: this.#state.created, firstSequence: this.#state.first, lastSequence: this.#state.last };
  }

  /** Past the end it drops all, but skips no sequences. */
  async purge(belowSequence: number, standing: LogPosition | null = null): Promise<void> {
    this.#assertOpen();
    if (standing !== null && !hasFingerprint(await this.#find(standing.sequence), standing.fingerprint)) return;
    const below = Math.min(belowSequence, this.#state.last + 1);
    while (this.#state.first < below && this.#closing !== 'all') {
      const step = Math.min(this.#state.first + PURGE_STEP, below);
      // `last_sequence` in the same statement: an emptied log must not begin at 1 again.
      const { rows } = await this.#deps.database.query<{ count: number; bytes: number }>(
        {
          name: 'bus_log_purge',
          text: `with gone as (delete from bus_log where sequence < $1 returning octet_length(body) as size),
            kept as (insert into bus_meta (key, value) values ('last_sequence', $2) on conflict (key) do update set value = excluded.value)
            select count(*)::int as count, coalesce(sum(size), 0)::float8 as bytes from gone`,
        },
        [step, String(this.#state.last)],
      );
      this.#state.first = Math.max(this.#state.first, step);
      this.#state.sizeBytes -= rows[0]?.bytes ?? 0;
      await this.#vacuum(rows[0]?.count ?? 0);
    }
  }

  hasCapacity(): boolean {
    return isBelowCapacity(this.#state.sizeBytes, this.#deps.limits.logBytes);
  }

  async stopReaders(): Promise<void> {
    if (this.#closing === 'no') this.#closing = 'readers';
    const readers = [...this.#readers.values()].flatMap((set) => [...set]);
    await Promise.all(readers.map((reader) => reader.stop()));
  }

  async shut(): Promise<void> {
    this.#closing = 'all';
    await this.#commit.idle();
  }

  async #flush(appends: Append[]): Promise<void> {
    await this.#deps.database.query(
      {
        name: 'bus_log_append',
        text: `insert into bus_log (sequence, p, message_id, body, stored_at_ms)
          select * from unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::bigint[])`,
      },
      [
        appends.map(({ command }) => command.sequence),
        appends.map(({ partition }) => partition),
        appends.map(({ command }) => toStoredText(command.messageId)),
        appends.map(({ command }) => toStoredText(command.body)),
        appends.map(({ command }) => command.storedAtMs),
      ],
    );
    // No await from here on: the log's state and its readers change atomically.
    for (const { partition, command, sizeBytes } of appends) {
      const previous = this.#state.lastOf.get(partition) ?? 0;
      this.#state.lastOf.set(partition, command.sequence);
      this.#state.last = command.sequence;
      this.#state.sizeBytes += sizeBytes;
      for (const reader of this.#readers.get(partition) ?? []) reader.deliver(command, previous);
    }
  }

  async #find(sequence: number): Promise<StoredCommand | null> {
    const { rows } = await this.#deps.database.query<CommandRow>(
      { name: 'bus_log_at', text: 'select sequence, message_id, body, stored_at_ms from bus_log where sequence = $1' },
      [sequence],
    );
    return rows[0] === undefined ? null : toCommand(rows[0]);
  }

  /** Its command is in the log, or, without a fingerprint, the log reaches that far. */
  async #contains({ sequence, fingerprint }: LogPosition): Promise<boolean> {
    if (sequence === 0) return true;
    if (fingerprint === null) return sequence <= this.#state.last;
    return hasFingerprint(await this.#find(sequence), fingerprint);
  }

  async #readPage(partition: number, afterSequence: number, limit: number): Promise<StoredCommand[]> {
    // Always at least one row; more only below the byte limit.
    const { rows } = await this.#deps.database.query<CommandRow>(
      {
        name: 'bus_log_page',
        text: `select sequence, message_id, body, stored_at_ms from (
            select sequence, message_id, body, stored_at_ms, sum(octet_length(body)) over (order by sequence) - octet_length(body) as before
            from (select sequence, message_id, body, stored_at_ms from bus_log where p = $1 and sequence > $2 order by sequence limit $3) candidates) page
          where before < $4 order by sequence`,
      },
      [partition, afterSequence, limit, PAGE_BYTES],
    );
    return rows.map(toCommand);
  }

  #assertOpen(): void {
    if (this.#closing === 'all') throw closed();
  }
}

interface CommandRow {
  sequence: number;
  message_id: string;
  body: string;
  stored_at_ms: number;
}

function toCommand(row: CommandRow): StoredCommand {
  return { sequence: row.sequence, messageId: fromStoredText(row.message_id), body: fromStoredText(row.body), storedAtMs: row.stored_at_ms };
}

async function loadState({ database, clock }: ComponentDeps): Promise<LogState> {
  // Written once per log.
  await database.query(`insert into bus_meta (key, value) values ('created', $1) on conflict (key) do nothing`, [ulid(clock.nowMs())]);
  const meta = await database.query<{ key: string; value: string }>('select key, value from bus_meta');
  const value = new Map(meta.rows.map((row) => [row.key, row.value]));
  const whole = await database.query<{ first: number | null; last: number | null; bytes: number }>(
    'select min(sequence) as first, max(sequence) as last, coalesce(sum(octet_length(body)), 0)::float8 as bytes from bus_log',
  );
  const partitions = await database.query<{ p: number; last: number }>('select p, max(sequence) as last from bus_log group by p');
  const { first = null, last = null, bytes = 0 } = whole.rows[0] ?? {};
  const lastEver = Math.max(last ?? 0, Number(value.get('last_sequence') ?? 0));
  return {
    created: value.get('created') ?? '',
    first: first ?? lastEver + 1,
    last: lastEver,
    sizeBytes: bytes,
    lastOf: new Map(partitions.rows.map((row) => [row.p, row.last])),
  };
}

function assertPartition(partition: number): void {
  if (Number.isInteger(partition) && partition >= 0 && partition < PARTITION_COUNT) return;
  throw new SwitchyardError('bus.invalid_subject', `there is no partition ${partition}`);
}

function closed(): SwitchyardError {
  return new SwitchyardError('bus.closed', 'the bus is closed');
}
