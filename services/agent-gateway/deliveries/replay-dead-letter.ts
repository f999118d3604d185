import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { deadEvent } from '#bus/messages/event-delivery.ts';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { DeadLetterRows, StoredLetter } from './dead-letter-rows.ts';

export interface ReplayDeps {
  deadLetterRows: DeadLetterRows;
  bus: { commands: Pick<Bus['commands'], 'append'> };
  clock: Clock;
}

const deadCommand = z.looseObject({ v: z.number(), type: z.string(), sessionId: z.string() });

/** Why the others are refused. */
const REFUSALS = {
  tool: 'a dead tool call cannot be replayed: its turn or run has gone on without it',
  call: 'a dead model call cannot be replayed: its turn or run has gone on without it',
} as const;

/**
 * Replays a dead letter by a command to the owner of its session. Order: row, command, dead letter: bus and database share no commit, and after a crash the
 * dead letter is still there, so the replay is repeated. The command's id derives from the dead letter, so that a repeat is deduplicated.
 * @returns `settled`: it was delivered meanwhile, and only the dead letter was left to remove
 * @throws `request.not_found` when what it stands for is gone; `request.conflict` when it can't be replayed
 */
export async function replayDeadLetter(letter: StoredLetter, deps: ReplayDeps): Promise<'replayed' | 'settled'> {
  switch (letter.source) {
    case 'delivery':
      return replayDelivery(letter, deps);
    case 'command':
      return replayCommand(letter, deps);
    case 'event':
      return replayEvent(letter, deps);
    case 'tool':
    case 'call':
      throw new SwitchyardError('request.conflict', REFUSALS[letter.source]);
  }
}

/**
 * The owner opens a round as after a pause. Before it, the row: a worker posts nothing for a delivery that is dead. A delivery that is open though its letter is
 * there is that of another request, which may have ended before its command: the command is the same. One without the letter was replayed, and its id is used.
 */
async function replayDelivery(letter: StoredLetter, { deadLetterRows, bus, clock }: ReplayDeps): Promise<'replayed' | 'settled'> {
  await deadLetterRows.reopen(letter);
  const delivery = await deadLetterRows.delivery(letter);
  if (delivery === null) throw new SwitchyardError('request.not_found', 'the delivery of this dead letter is gone');
  const { sessionId, traceparent, state, hasLetter } = delivery;
  if (state === 'delivered') {
    await deadLetterRows.remove(letter);
    return 'settled';
  }
  if (!hasLetter) throw new SwitchyardError('request.not_found', 'this dead letter was replayed meanwhile');
  const commandId = replayId(letter);
  const due: CommandOf<'delivery.due'> = {
    v: 1,
    type: 'delivery.due',
    sessionId,
    commandId,
    sentAtMs: clock.nowMs(),
    answerTo: null,
    traceparent,
    deliveryId: letter.id,
  };
  await bus.commands.append(partitionOf(sessionId), commandId, JSON.stringify(due));
  await deadLetterRows.remove(letter);
  return 'replayed';
}

/** One attempt, outside the order of its session's events. When it fails, the owner stores the dead letter again. */
async function replayEvent(letter: StoredLetter, { deadLetterRows, bus, clock }: ReplayDeps): Promise<'replayed'> {
  const { sessionId, offset, url, bundleHash } = deadEvent.parse(jsonIn(letter.body));
  if (url === '') throw new SwitchyardError('request.conflict', 'its session had no event webhook any more when the event was given up again');
  if (!(await deadLetterRows.hasEvent(sessionId, offset))) throw new SwitchyardError('request.not_found', 'the event of this dead letter is deleted');
  const commandId = replayId(letter);
  const replay: CommandOf<'event-webhook.replay'> = {
    ...{ v: COMMAND_VERSION, type: 'event-webhook.replay', sessionId, commandId },
    ...{ sentAtMs: clock.nowMs(), answerTo: null, traceparent: null },
    ...{ offset, url, bundleHash },
  };
  await bus.commands.append(partitionOf(sessionId), commandId, JSON.stringify(replay));
  await deadLetterRows.remove(letter);
  return 'replayed';
}

async function replayCommand(letter: StoredLetter, { deadLetterRows, bus }: ReplayDeps): Promise<'replayed'> {
  const command = deadCommand.safeParse(jsonIn(letter.body));
  if (!command.success) throw new SwitchyardError('request.conflict', 'the dead command is not valid, so no owner could apply it');
  const commandId = replayId(letter);
  // No request waits for its reply any more, and the tag is of the old id.
  const { tag: _, ...content } = command.data;
  await bus.commands.append(letter.partition ?? partitionOf(command.data.sessionId), commandId, JSON.stringify({ ...content, commandId, answerTo: null }));
  await deadLetterRows.remove(letter);
  return 'replayed';
}

function replayId({ id, source, atMicros }: StoredLetter): string {
  return `replay-${createHash('sha256').update(`${source} ${id} ${atMicros}`).digest('hex').slice(0, 32)}`;
}
