import { describe, expect, it } from 'vitest';
import { transition } from '../../runtime/apply/transition.ts';
import type { DeliveryState } from './actor.ts';
import { deliveryMachine } from './machine.ts';
import type { DeliveryEvent } from './types.ts';

const ID = 'run_1-callback';
const AT_MS = 1_000_000;
const fields = { deliveryId: ID, traceparent: null };

type Body = DeliveryEvent extends infer Event ? (Event extends DeliveryEvent ? Omit<Event, 'atMs'> : never) : never;

/** The next state with its round, and each action as a line. */
function step(value: DeliveryState['value'], roundId: string | null, body: Body): [string, string | null, ...string[]] {
  const before = deliveryMachine.resolveState({ value, context: { ...fields, roundId } });
  const [next, actions] = transition(deliveryMachine, before, { ...body, atMs: AT_MS } as DeliveryEvent);
  return [String(next.value), next.context.roundId, ...actions.map((action) => lineOf(action as { type: string; params?: unknown }))];
}

function lineOf({ type, params }: { type: string; params?: unknown }): string {
  const { id, key, state, reason, command, atMs } = params as Record<string, unknown>;
  const due = typeof atMs === 'number' ? ` in ${atMs - AT_MS}` : '';
  const what = typeof command === 'object' ? ` ${(command as { type: string }).type}` : command === undefined ? '' : ` ${String(command)}`;
  return [type, id ?? key, state, reason].filter((word) => word !== undefined).join(' ') + due + what;
}

const opened = (id: string) => [`effect ${id}`, `timer ${id}-overdue in 150000 effect.overdue`];
const closed = (id: string, state = 'done') => [`close ${id} ${state}`, `disarm ${id}-overdue`];

const delivered: Body = { type: 'round.delivered', roundId: 'r1' };
const exhausted: Body = { type: 'round.exhausted', roundId: 'r1', reason: 'it answered 503' };
const overdue: Body = { type: 'round.overdue', roundId: 'r1', nextRoundId: 'r2' };
const due: Body = { type: 'retry.due', nextRoundId: 'r2' };
const failed = (over: { attempts?: number; retryAfterMs?: number | null; chance?: number } = {}): Body => ({
  ...{ type: 'round.failed', roundId: 'r1', attempts: 1, retryAfterMs: null, chance: 0.5 },
  ...over,
});
const isDelivered = ['delivered', 'r1', ...closed('r1'), 'settle delivered'];
const isDead = ['dead', 'r1', ...closed('r1'), 'settle dead it answered 503'];

describe('a delivery', () => {
  it.each<[string, DeliveryState['value'], string | null, Body, (string | null)[]]>([
    ['opens its first round', 'opening', null, { type: 'delivery.opened', nextRoundId: 'r1' }, ['posting', 'r1', ...opened('r1')]],
    ['waits after a failure', 'posting', 'r1', failed(), ['waiting', null, ...closed('r1'), 'timer r1-due in 1000 delivery.due']],
    ['ignores a late failure of a superseded round, while another is open', 'posting', 'r2', failed(), ['posting', 'r2']],
    ['ignores a failure of a superseded round, whichever is open', 'posting', null, failed(), ['posting', null]],
    ['supersedes a round without a report, and opens another', 'posting', 'r1', overdue, ['posting', 'r2', ...closed('r1', 'superseded'), ...opened('r2')]],
    ['ignores the timer of a round that is closed', 'posting', null, overdue, ['posting', null]],
    ['ends with a delivered round', 'posting', 'r1', delivered, isDelivered],
    ['ends with a late report of a superseded round, too', 'posting', null, delivered, ['delivered', null, ...isDelivered.slice(2)]],
    ['is dead after the last try', 'posting', 'r1', exhausted, isDead],
    ['is dead by a late report of a superseded round, too', 'posting', null, exhausted, ['dead', null, ...isDead.slice(2)]],
    ['opens no second round for a retry while one is open', 'posting', 'r1', due, ['posting', 'r1']],
    ['opens the next round when its retry is due', 'waiting', null, due, ['posting', 'r2', ...opened('r2')]],
    ['ends while it waits, by a report that came late', 'waiting', null, delivered, ['delivered', null, ...isDelivered.slice(2)]],
    ['is dead while it waits, by a report that came late', 'waiting', null, exhausted, ['dead', null, ...isDead.slice(2)]],
    ['ignores a repeated failure while it waits', 'waiting', null, failed(), ['waiting', null]],
    ['ignores an overdue timer while it waits', 'waiting', null, overdue, ['waiting', null]],
  ])('%s', (_, value, roundId, event, expected) => {
    expect(step(value, roundId, event)).toEqual(expected);
  });

  it.each(['delivered', 'dead'] as const)('that is %s settles no second time: a later report closes its own round alone', (value) => {
    for (const report of [delivered, exhausted, failed()]) expect(step(value, null, report)).toEqual([value, null, ...closed('r1')]);
    expect(step(value, null, overdue)).toEqual([value, null, ...closed('r1', 'superseded')]);
    expect(step(value, null, due)).toEqual([value, null]);
  });

  it.each([
    ['a second', { attempts: 1 }, 1_000],
    ['twice as long after each failure', { attempts: 4 }, 8_000],
    ['at most a minute', { attempts: 12 }, 60_000],
    ['as long as the receiver asks', { attempts: 1, retryAfterMs: 7_000 }, 7_000],
    ['no shorter than its back-off', { attempts: 4, retryAfterMs: 10 }, 8_000],
    ['a fifth less', { attempts: 1, chance: 0 }, 800],
    ['a fifth more', { attempts: 1, chance: 1 }, 1_200],
  ])('waits %s', (_, over, pauseMs) => {
    expect(step('posting', 'r1', failed(over)).at(-1)).toBe(`timer r1-due in ${pauseMs} delivery.due`);
  });
});
