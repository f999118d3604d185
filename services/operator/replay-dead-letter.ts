import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import type { CommandTags } from '#bus/command-tags.ts';
import type { DeliveryWork } from '#bus/messages/delivery.ts';
import { deadEvent, EVENT_WORK_VERSION, type EventWork, replayOf } from '#bus/messages/event-delivery.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Database } from '#shared/storage/database.ts';
import { type FoundLetter, findDeadLetters, removeDeadLetter, type Source } from './dead-letters.ts';

/** The queue's retention: no timer stands behind a replayed item, so it must not be given up earlier. */
const REPLAY_DEADLINE_MS = 24 * 3_600_000;

export interface ReplayDeps {
  database: Database;
  bus: Pick<Bus, 'work' | 'commands' | 'usage'>;
  /** For commands, which owners refuse without a tag. */
  openTags(): Promise<Pick<CommandTags, 'tagged'>>;
  clock: Clock;
}

/** `settled`: delivered meanwhile; only the dead letter was left to remove. */
export type Replayed = { type: 'delivery' | 'event'; effectId: string } | { type: 'command'; commandId: string } | { type: 'usage' } | { type: 'settled' };

const deadCommand = z.looseObject({ v: z.number(), type: z.string(), sessionId: z.string() });

/**
 * Replays a dead letter.
 * @param source null: any
 * @throws `request.not_found` when the dead letter, or the delivery it stands for, is gone; `request.invalid` when it can't be replayed
 */
export async function replayDeadLetter(id: string, source: Source | null, deps: ReplayDeps): Promise<Replayed> {
  const found = (await findDeadLetters(deps.database, id)).filter((letter) => source === null || letter.source === source);
  const [letter, another] = found.length > 1 ? found.filter((candidate) => isReplayable(candidate.source)) : found;
  if (letter === undefined)
    throw new SwitchyardError('request.not_found', `there is no dead letter ${id}: \`switchyard dead-letters list\` names those that there are`);
  if (another !== undefined) throw new SwitchyardError('request.invalid', `several dead letters have the id ${id}: choose one with --source`);
  switch (letter.source) {
    case 'delivery':
      return replayDelivery(letter, deps);
    case 'event':
      return replayEvent(letter, deps);
    case 'command':
      return replayCommand(letter, deps);
    case 'usage':
      return replayUsage(letter, deps);
    case 'tool':
    case 'call':
      throw new SwitchyardError('request.invalid', `a dead ${letter.source} can't be replayed: its turn or run has gone on without it`);
  }
}

function isReplayable(source: Source): boolean {
  return source !== 'tool' && source !== 'call';
}

/**
 * Order: row, item, dead letter. Bus and database share no commit: after a crash the dead letter is still there, and the replay is repeated. At worst the
 * callback is posted twice, which receivers detect by the run id. The row comes first because a worker drops an item of a dead delivery.
 */
async function replayDelivery(letter: FoundLetter, { database, bus, clock }: ReplayDeps): Promise<Replayed> {
  const { rows } = await database.query<{ session_id: string; traceparent: string | null }>(
    `update deliveries set state = 'open', attempts = 0, settled_at = null where id = $1 and state <> 'delivered' returning session_id, traceparent`,
    [letter.id],
  );
  const [delivery] = rows;
  if (delivery === undefined) return removeSettled(letter, database);
  const nowMs = clock.nowMs();
  const effectId = `${letter.id}-replay-${ulid(nowMs)}`;
  const item: DeliveryWork = {
    v: 1,
    effectId,
    deliveryId: letter.id,
    sessionId: delivery.session_id,
    deadlineAtMs: nowMs + REPLAY_DEADLINE_MS,
    createdAtMs: nowMs,
    republished: false,
    traceparent: delivery.traceparent,
  };
  await bus.work.publish('delivery', effectId, JSON.stringify(item));
  await removeDeadLetter(database, letter);
  return { type: 'delivery', effectId };
}

/**
 * One attempt, outside the order of its session's events; when it fails, the owner stores the dead letter again. Order: item, dead letter; at worst the event
 * is posted twice, which receivers detect by session and offset.
 */
async function replayEvent(letter: FoundLetter, { database, bus, clock }: ReplayDeps): Promise<Replayed> {
  const { sessionId, offset, url, bundleHash } = deadEvent.parse(jsonIn(letter.body));
  if (url === '') throw new SwitchyardError('request.invalid', `the session ${sessionId} had no event webhook any more when its event was given up again`);
  const { rows } = await database.query('select 1 as one from events where session_id = $1 and off = $2 and deleted_at is null', [sessionId, offset]);
  if (rows.length === 0) throw new SwitchyardError('request.not_found', `the event ${offset} of session ${sessionId} is deleted`);
  const nowMs = clock.nowMs();
  const effectId = replayOf(letter.id, ulid(nowMs));
  const item: EventWork = {
    v: EVENT_WORK_VERSION,
    type: 'events',
    effectId,
    sessionId,
    bundleHash,
    url,
    kinds: null,
    fromOffset: offset,
    toOffset: offset + 1,
    attempts: 0,
    waitingSinceMs: null,
    deadlineAtMs: nowMs + REPLAY_DEADLINE_MS,
    createdAtMs: nowMs,
    republished: false,
    traceparent: null,
  };
  await bus.work.publish('delivery', effectId, JSON.stringify(item));
  await removeDeadLetter(database, letter);
  return { type: 'event', effectId };
}

async function removeSettled(letter: FoundLetter, database: Database): Promise<Replayed> {
  const { rows } = await database.query('select 1 as one from deliveries where id = $1', [letter.id]);
  if (rows.length === 0) throw new SwitchyardError('request.not_found', `the delivery ${letter.id} is gone`);
  await removeDeadLetter(database, letter);
  return { type: 'settled' };
}

/**
 * Order: command, dead letter; after a crash the replay is repeated. The new id derives from the dead letter, so a repeat is deduplicated. It differs from the
 * original id, which is a processed command already.
 */
async function replayCommand(letter: FoundLetter, { database, bus, openTags }: ReplayDeps): Promise<Replayed> {
  const command = deadCommand.safeParse(jsonIn(letter.body));
  if (!command.success) throw new SwitchyardError('request.invalid', 'the dead command is not valid, so no owner could apply it');
  const commandId = `replay-${createHash('sha256').update(`${letter.id} ${letter.createdAt}`).digest('hex').slice(0, 32)}`;
  // No request waits for its reply any more.
  const { tag: _, ...content } = command.data;
  const body = (await openTags()).tagged(JSON.stringify({ ...content, commandId, answerTo: null }));
  await bus.commands.append(letter.partition ?? partitionOf(command.data.sessionId), commandId, body);
  await removeDeadLetter(database, letter);
  return { type: 'command', commandId };
}

/**
 * Order: record, dead letter; after a crash the replay is repeated, and the ledger has one row per call. A new id, since the log may still drop the old one as
 * a duplicate.
 */
async function replayUsage(letter: FoundLetter, { database, bus, clock }: ReplayDeps): Promise<Replayed> {
  await bus.usage.append(`${letter.id}-replay-${ulid(clock.nowMs())}`, letter.body);
  await removeDeadLetter(database, letter);
  return { type: 'usage' };
}
