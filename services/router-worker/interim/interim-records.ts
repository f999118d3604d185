import { setImmediate as nextTurn } from 'node:timers/promises';
import { type UsageRecord, usageRecord, usageRecordText } from '#bus/messages/usage.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { FIND_INTERIM, WRITE_INTERIM } from './interim-sql.ts';

/** Between two looks at the calls of this worker. A call is first written at the second look that finds content, so short answers cost nothing. */
const LOOK_EVERY_MS = 1_000;
/** Between two records of one call, in looks: so much may be missing in the bill of a call whose worker and gateway died. */
const LOOKS_PER_RECORD = 5;
/** Several records may be late, as while the database restarts. */
const VALID_MS = 30_000;
/** Per statement. */
const MAX_BATCH = 500;
/** Made in one turn of the event loop. Calls that begin together are due together, and their tokens would wait for all records. */
const MAX_PER_TURN = 16;

interface Followed {
  callId: string;
  /** Null: nothing is shown yet. */
  recordOf(): UsageRecord | null;
  /** Whether a look has found content. */
  hasContent: boolean;
  /** Looks until the next record. */
  left: number;
  /** Whether it was logged that its record could not be made. */
  isFaulty: boolean;
}

interface Due {
  followed: Followed;
  record: UsageRecord;
}

interface InterimDeps {
  database: Queryable;
  log: Log;
  /** For tests. */
  lookEveryMs?: number;
}

/**
 * Writes what running calls have used so far, every few seconds: from these the ledger bills calls whose worker and gateway died together, and workers calls
 * whose frames are lost. Nothing waits for it: a record that the database does not take is written with the next one.
 */
export class InterimRecords {
  readonly #deps: InterimDeps;
  readonly #followed = new Set<Followed>();
  #timer: NodeJS.Timeout | null = null;
  #isWriting = false;
  /** Whether it was logged that the database refuses the statement. */
  readonly #refused = { read: false, write: false };

  constructor(deps: InterimDeps) {
    this.#deps = deps;
  }

  /** @returns ends it: the call's usage record is stored, or another worker has the call */
  follow(callId: string, recordOf: Followed['recordOf']): () => void {
    const followed: Followed = { callId, recordOf, hasContent: false, left: 1, isFaulty: false };
    this.#followed.add(followed);
    this.#timer ??= setInterval(() => void this.#look(), this.#deps.lookEveryMs ?? LOOK_EVERY_MS).unref();
    return () => {
      this.#followed.delete(followed);
      if (this.#followed.size === 0) this.stop();
    };
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** The last record of a call that was not ended. Null: there is none, or the database can't say. */
  async find(callId: string): Promise<UsageRecord | null> {
    try {
      const { rows } = await this.#deps.database.query<{ record: string }>(FIND_INTERIM, [callId]); // no fail point: reads
      this.#onSuccess('read');
      return usageRecord.safeParse(jsonIn(rows[0]?.record ?? '')).data ?? null;
    } catch (error) {
      this.#onFailure('read', error, { call_id: callId }, 'the interim record of a redelivered call could not be read');
      return null;
    }
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    let due: Due[] = [];
    try {
      due = await this.#due(); // no fail point: pauses
      for (let at = 0; at < due.length; at += MAX_BATCH) await this.#write(due.slice(at, at + MAX_BATCH)); // no fail point: inside
      if (due.length > 0) this.#onSuccess('write');
    } catch (error) {
      this.#onFailure('write', error, { calls: due.length }, 'interim records could not be written: the next ones follow');
    } finally {
      this.#isWriting = false;
    }
  }

  /** Of calls that have not ended meanwhile. */
  async #due(): Promise<Due[]> {
    const due: Due[] = [];
    let made = 0;
    for (const followed of this.#followed) {
      followed.left -= 1;
      if (followed.left > 0) continue;
      const record = this.#recordOf(followed);
      if (record !== null) due.push({ followed, record });
      made += 1;
      if (made % MAX_PER_TURN === 0) await nextTurn(); // no fail point: pauses
    }
    return due.filter(({ followed }) => this.#followed.has(followed));
  }

  /** A database that is away is reported elsewhere. One that refuses the statement, for its schema or a permission, is an error, logged once until the statement succeeds. */
  #onFailure(statement: 'read' | 'write', error: unknown, fields: object, message: string): void {
    if (isTransientError(error)) this.#deps.log.debug({ err: error, ...fields }, message);
    else if (!this.#refused[statement]) {
      this.#refused[statement] = true;
      this.#deps.log.error({ err: error, ...fields }, `${message} (the database refuses the statement; calls whose worker dies may not be billed)`);
    }
  }

  #onSuccess(statement: 'read' | 'write'): void {
    if (this.#refused[statement]) this.#deps.log.info({}, `interim records are ${statement === 'read' ? 'read' : 'written'} again`);
    this.#refused[statement] = false;
  }

  /** Null: not at this look. A record that can't be made is tried again at the next one. */
  #recordOf(followed: Followed): UsageRecord | null {
    try {
      return recordOf(followed);
    } catch (error) {
      const message = 'what a running call has used could not be recorded: if its worker dies, the call may not be billed';
      if (!followed.isFaulty) this.#deps.log.error({ err: error, call_id: followed.callId }, message);
      followed.isFaulty = true;
      return null;
    }
  }

  async #write(due: readonly Due[]): Promise<void> {
    const ids = due.map(({ record }) => record.generationId);
    // no fail point, because the next look writes the same row again
    await this.#deps.database.query(WRITE_INTERIM, [ids, due.map(({ record }) => usageRecordText(record)).join('\n'), VALID_MS]);
  }
}

/** Null: not at this look. @throws for a record whose text the database or the ledger would refuse, such as one with a cost of NaN */
function recordOf(followed: Followed): UsageRecord | null {
  followed.left = 1;
  const record = followed.recordOf();
  if (record === null) return null;
  if (!followed.hasContent) {
    followed.hasContent = true;
    return null;
  }
  usageRecord.parse(record);
  followed.left = LOOKS_PER_RECORD;
  return record;
}
