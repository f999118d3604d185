import { AsyncResource } from 'node:async_hooks';
import type { StreamInfo } from '@nats-io/jetstream';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { CommandLog, LogPosition, ReadOptions, StoredCommand, Subscription } from '../../bus.ts';
import { PARTITION_COUNT } from '../../partition.ts';
import { pauseFor } from '../../pause.ts';
import { fingerprintOf, hasFingerprint } from '../../position-fingerprint.ts';
import { addresses, subjectOf } from '../../subjects.ts';
import type { NatsLink } from '../connection/link.ts';
import type { StoredPublish } from '../connection/stored-publish.ts';
import { fromWireId, MESSAGE_ID_HEADER } from '../connection/wire-id.ts';
import { streams } from '../streams.ts';
import type { Closable } from '../types.ts';
import { CommandFeed } from './command-feed.ts';
import { CommandReader } from './command-reader.ts';
import { LogFingerprint } from './log-fingerprint.ts';

/**
 * In a cluster a position that is not found is looked for this long: a server of nats-server before 2.11 that becomes the leader answers before it has applied
 * all that it has stored, and would make a whole log seem rolled back.
 */
const LATE_POSITION_MS = 5_000;
const LOOK_AGAIN_MS = 500;
/** One commit of an actor host takes as many. */
const DEFAULT_MAX_BATCH = 128;

export interface CommandLogDeps {
  link: NatsLink;
  publish: StoredPublish;
  budgetMs: number;
  log: Log;
}

/** The command log as a stream. A reader has a consumer without acks; its caller stores the position. */
export class NatsCommandLog implements CommandLog, Closable {
  readonly #deps: CommandLogDeps;
  readonly #fingerprint = new LogFingerprint();
  readonly #readers = new Set<CommandReader>();
  #stopping = false;

  constructor(deps: CommandLogDeps) {
    this.#deps = deps;
  }

  async append(partition: number, messageId: string, body: string): Promise<{ sequence: number; duplicate: boolean }> {
    const stored = await this.#deps.publish(subjectOfPartition(partition), messageId, body);
    if (!stored.duplicate) this.#fingerprint.record(stored.sequence, messageId);
    return stored;
  }

  read(
    partition: number,
    after: LogPosition,
    handler: (commands: StoredCommand[]) => Promise<void>,
    { maxBatch = DEFAULT_MAX_BATCH, onRestart = () => {} }: ReadOptions = {},
  ): Subscription {
    if (this.#stopping) throw new SwitchyardError('bus.closed', 'the bus is closed');
    const subject = subjectOfPartition(partition);
    const { link, budgetMs, log } = this.#deps;
    const reader = new CommandReader({
      partition,
      after,
      maxBatch,
      // Bound: commands arrive in a connection's async context.
      handler: AsyncResource.bind(handler),
      onRestart,
      findPosition: (position, checkedAt, until) => this.#findPosition(position, checkedAt, until),
      openFeed: (sequence, session, until) => CommandFeed.open({ link, subject, after: sequence, session, until, budgetMs, log }),
      ...(link.isCluster ? { next: (after, until) => this.#get({ seq: after + 1, next_by_subj: subject }, until) } : {}),
      record: (command) => this.#fingerprint.record(command.sequence, fingerprintOf(command)),
      log,
    });
    this.#readers.add(reader);
    return {
      stop: async () => {
        await reader.stop();
        this.#readers.delete(reader);
      },
    };
  }

  async at(sequence: number): Promise<StoredCommand | null> {
    const found = await this.#get({ seq: sequence });
    if (found !== null) this.#fingerprint.record(found.sequence, fingerprintOf(found));
    return found;
  }

  async lastOf(partition: number): Promise<number> {
    return (await this.#get({ last_by_subj: subjectOfPartition(partition) }))?.sequence ?? 0;
  }

  async state(): Promise<{ created: string; firstSequence: number; lastSequence: number }> {
    const { created, state } = await this.#info();
    // A stream that never held anything begins at 0.
    return { created, firstSequence: state.messages === 0 ? state.last_seq + 1 : state.first_seq, lastSequence: state.last_seq };
  }

  /** Purges neither below 1, which nats-server 2.9 takes as "everything", nor past the end, which would skip sequences. */
  async purge(belowSequence: number, standing: LogPosition | null = null): Promise<void> {
    const { link, budgetMs } = this.#deps;
    link.retries.assertOpen();
    const session = await link.up(AbortSignal.timeout(budgetMs));
    if (standing !== null && !hasFingerprint(await this.at(standing.sequence), standing.fingerprint)) return;
    const { firstSequence, lastSequence } = await this.state();
    const below = Math.min(Math.floor(belowSequence), lastSequence + 1);
    if (below <= 1 || below <= firstSequence) return;
    // Not retried: after a reconnect it may be another log.
    if (session.aborted) throw new SwitchyardError('service.unreachable', 'the connection was lost while the command log was checked');
    await link.changes.streams.purge(streams.commands.name, { seq: below });
  }

  async stopReaders(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#readers].map((reader) => reader.stop()));
  }

  async #findPosition(position: LogPosition, checkedAt: number, until: AbortSignal): Promise<{ isHere: boolean; checkedAt: number; session: AbortSignal }> {
    const session = await this.#deps.link.up(until);
    const check = this.#fingerprint.nextCheck();
    const isHere = await this.#containsInTime(position, checkedAt, until, session);
    if (!isHere) this.#fingerprint.restarted();
    return { isHere, checkedAt: check, session };
  }

  async #containsInTime(position: LogPosition, checkedAt: number, until: AbortSignal, session: AbortSignal): Promise<boolean> {
    const endsAtMs = performance.now() + (this.#deps.link.isCluster ? LATE_POSITION_MS : 0);
    for (;;) {
      if (await this.#contains(position, checkedAt, until)) return true;
      if (performance.now() >= endsAtMs) return false;
      await pauseFor(LOOK_AGAIN_MS, until);
      until.throwIfAborted();
      // Another server answers now: its look-up begins anew.
      if (session.aborted) throw new SwitchyardError('service.unreachable', 'the connection was lost while a position was looked for');
    }
  }

  async #contains(position: LogPosition, checkedAt: number, until: AbortSignal): Promise<boolean> {
    if (position.sequence === 0) return true;
    if (position.fingerprint === null) return position.sequence <= (await this.#info(until)).state.last_seq;
    const found = await this.#get({ seq: position.sequence }, until);
    if (found !== null) return hasFingerprint(found, position.fingerprint);
    return this.#fingerprint.confirms(position, checkedAt, (sequence) => this.#get({ seq: sequence }, until));
  }

  /** Asks the leader, not by direct get: a lagging replica would make commands seem lost. */
  async #get(query: { seq: number; next_by_subj?: string } | { last_by_subj: string }, until: AbortSignal | null = null): Promise<StoredCommand | null> {
    const { link, budgetMs } = this.#deps;
    if ('seq' in query && query.seq < 1) return null;
    const found = await link.retries.callApi('look up a command', budgetMs, () => link.manager.streams.getMessage(streams.commands.name, query), until);
    if (found === null) return null;
    return { sequence: found.seq, messageId: fromWireId(found.header.get(MESSAGE_ID_HEADER)), body: found.string(), storedAtMs: found.time.getTime() };
  }

  #info(until: AbortSignal | null = null): Promise<StreamInfo> {
    const { link, budgetMs } = this.#deps;
    return link.retries.callApi('describe the command log', budgetMs, () => link.manager.streams.info(streams.commands.name), until);
  }
}

function subjectOfPartition(partition: number): string {
  if (!Number.isInteger(partition) || partition < 0 || partition >= PARTITION_COUNT) {
    throw new SwitchyardError('bus.invalid_subject', `there is no partition ${partition}`);
  }
  return subjectOf(addresses.commands, partition);
}
