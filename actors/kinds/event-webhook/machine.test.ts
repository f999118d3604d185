import { describe, expect, it } from 'vitest';
import { initialTransition, transition } from '../../runtime/apply/transition.ts';
import { eventWebhookMachine } from './machine.ts';
import type { EventWebhookContext, EventWebhookEvent, EventWebhookInput, Scene } from './types.ts';

const MAX_ATTEMPTS = 3;
const own: EventWebhookInput = { url: 'https://a.example/', isOn: true, cursor: 0, bundleHash: 'b' };
const ofDeployment: EventWebhookInput = { ...own, url: null };

/** One webhook and the log before it. */
function webhook(input: EventWebhookInput, deployment: Scene['deployment'] = null) {
  let [state] = initialTransition(eventWebhookMachine, input);
  let head = 0;
  let rounds = 0;
  let atMs = 0;
  const scene = (): Scene => {
    rounds += 1;
    return { atMs, head, deployment, nextRoundId: `r${rounds}` };
  };
  const send = (event: EventWebhookEvent) => {
    const [next, actions] = transition(eventWebhookMachine, state, event);
    state = next;
    return actions.map(({ type, params }) => ({ type, ...(params as object) }) as { type: string } & Record<string, unknown>);
  };
  const roundId = () => state.context.roundId ?? expect.fail('there is no round');
  return {
    send,
    scene,
    append(...kinds: string[]) {
      const first = head;
      head += kinds.length;
      return send({ type: 'events.appended', scene: scene(), first, kinds, bundleHash: null });
    },
    posted: (nextOffset: number, id = roundId()) => send({ type: 'round.posted', scene: scene(), roundId: id, nextOffset }),
    failed(nextOffset: number, id = roundId()) {
      const pause = { retryAfterMs: null, chance: 0.5 };
      return send({ type: 'round.failed', scene: scene(), roundId: id, nextOffset, maxAttempts: MAX_ATTEMPTS, reason: 'no', ...pause });
    },
    due: (id = roundId()) => send({ type: 'retry.due', scene: scene(), roundId: id }),
    set: (url: string | null, fromOffset: number | null) => send({ type: 'webhook.set', scene: scene(), url, fromOffset, bundleHash: 'c' }),
    later(ms: number) {
      atMs += ms;
    },
    roundId,
    get value(): string {
      return state.value as string;
    },
    get context(): EventWebhookContext {
      return state.context;
    },
  };
}

const types = (actions: readonly { type: string }[]) => actions.map(({ type }) => type);
const effectIn = (actions: readonly ({ type: string } & Record<string, unknown>)[]) => actions.find(({ type }) => type === 'effect') ?? null;

describe('the event webhook of a session', () => {
  it('opens a round for what is appended, and one for the rest after its report', () => {
    const hook = webhook(own);
    expect(effectIn(hook.append('user_message'))).toMatchObject({ kind: 'event-delivery', id: 'r1', url: own.url, kinds: null, fromOffset: 0, toOffset: 1 });
    expect(hook.append('status', 'status')).toEqual([]);

    const actions = hook.posted(1);
    expect(types(actions)).toEqual(['close', 'disarm', 'effect', 'timer']);
    expect(effectIn(actions)).toMatchObject({ fromOffset: 1, toOffset: 3, attempts: 0 });
    expect(types(hook.posted(3))).toEqual(['close', 'disarm']);
    expect(hook).toMatchObject({ value: 'idle', context: { cursor: 3 } });
  });

  it('moves its cursor by the report of the open round alone, never back, and never past the log', () => {
    const hook = webhook(own);
    hook.append('user_message', 'status', 'status');
    expect(hook.posted(3, 'r0')).toEqual([]);
    expect(hook.context.cursor).toBe(0);

    hook.posted(2);
    hook.failed(1);
    expect(hook.context).toMatchObject({ cursor: 2, attempts: 1 });
    hook.due();
    hook.posted(9);
    expect(hook).toMatchObject({ value: 'idle', context: { cursor: 3 } });
  });

  it('waits after a failure, longer after each, and counts the attempts of one event', () => {
    const hook = webhook(own);
    hook.append('user_message', 'status');
    const first = hook.failed(0);
    expect(first.at(-1)).toMatchObject({ type: 'timer', key: 'r1-due', atMs: 1_000, command: { type: 'event-webhook.due', roundId: 'r1' } });
    hook.later(1_000);
    expect(effectIn(hook.due())).toMatchObject({ fromOffset: 0, attempts: 1, waitingSinceMs: 0 });
    expect(hook.failed(0).at(-1)).toMatchObject({ atMs: 3_000 });
    hook.due();

    expect(hook.failed(1).at(-1)).toMatchObject({ atMs: 2_000 });
    expect(hook.context).toMatchObject({ cursor: 1, attempts: 1 });
  });

  it('gives an event up after its last attempt and goes on with the next', () => {
    const hook = webhook(own);
    hook.append('user_message', 'status');
    for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
      hook.failed(0);
      hook.due();
    }
    const actions = hook.failed(0);

    expect(types(actions)).toEqual(['close', 'disarm', 'giveUp', 'effect', 'timer']);
    expect(actions[2]).toMatchObject({ offset: 0, reason: 'no' });
    expect(effectIn(actions)).toMatchObject({ fromOffset: 1, attempts: 0, waitingSinceMs: null });
  });

  it('a pause of its receiver uses up no attempt', () => {
    const hook = webhook(own);
    hook.append('user_message');
    const pause = { retryAfterMs: 7_000, chance: 0 };
    const actions = hook.send({ type: 'round.postponed', scene: hook.scene(), roundId: hook.roundId(), nextOffset: 0, ...pause });

    expect(actions.at(-1)).toMatchObject({ type: 'timer', atMs: 7_000 });
    expect(hook.context.attempts).toBe(0);
  });

  it('a round without a report is superseded by another from the same event', () => {
    const hook = webhook(own);
    hook.append('user_message');
    const actions = hook.send({ type: 'round.overdue', scene: hook.scene(), roundId: 'r1' });

    expect(actions[0]).toMatchObject({ type: 'close', id: 'r1', state: 'superseded' });
    expect(effectIn(actions)).toMatchObject({ fromOffset: 0, toOffset: 1 });
    expect(hook.posted(1, 'r1')).toEqual([]);
  });

  it('kinds that the deployment leaves out open no round', () => {
    const hook = webhook(ofDeployment, { url: 'https://d.example/', kinds: ['tool'] });
    expect(hook.append('user_message', 'status')).toEqual([]);
    expect(hook.context.cursor).toBe(2);

    expect(effectIn(hook.append('status', 'tool'))).toMatchObject({ url: 'https://d.example/', kinds: ['tool'], fromOffset: 2, toOffset: 4 });
    expect(hook.append('status')).toEqual([]);
    expect(effectIn(hook.posted(4))).toMatchObject({ fromOffset: 4, toOffset: 5 });
  });

  it('rests without an address, and goes on where it was', () => {
    const hook = webhook(ofDeployment);
    expect(hook.append('user_message')).toEqual([]);
    expect(effectIn(hook.set('https://b.example/', null))).toMatchObject({ url: 'https://b.example/', fromOffset: 0 });
    hook.posted(1);
    hook.set(null, null);
    expect(hook.append('status')).toEqual([]);
    expect(hook).toMatchObject({ value: 'idle', context: { cursor: 1 } });
  });
});

describe('a changed address or offset', () => {
  it('counts after the report of the open round, so that no two are open', () => {
    const hook = webhook(own);
    hook.append('user_message', 'status');
    hook.posted(2);
    hook.append('status');
    expect(hook.set('https://b.example/', 0)).toEqual([]);

    const actions = hook.posted(3);
    expect(types(actions)).toEqual(['close', 'disarm', 'effect', 'timer']);
    expect(effectIn(actions)).toMatchObject({ url: 'https://b.example/', fromOffset: 0, toOffset: 3 });
    hook.posted(3);
    expect(hook).toMatchObject({ value: 'idle', context: { cursor: 3 } });
  });

  it('ends a pause', () => {
    const hook = webhook(own);
    hook.append('user_message');
    hook.failed(0);
    const actions = hook.set('https://b.example/', null);

    expect(actions[0]).toMatchObject({ type: 'disarm', key: 'r1-due' });
    expect(effectIn(actions)).toMatchObject({ url: 'https://b.example/', fromOffset: 0, attempts: 0 });
    expect(hook.due('r1')).toEqual([]);
  });
});

describe('the end of its session', () => {
  it('waits for the last event', () => {
    const hook = webhook(own);
    hook.append('user_message');
    hook.send({ type: 'session.ended' });

    expect(types(hook.posted(1))).toEqual(['close', 'disarm', 'endSession']);
    hook.append('status');
    expect(types(hook.posted(2))).toEqual(['close', 'disarm']);
  });

  it('by a deletion closes the round, or ends the pause', () => {
    const posting = webhook(own);
    posting.append('user_message');
    expect(posting.send({ type: 'session.erased' })[0]).toMatchObject({ type: 'close', id: 'r1', state: 'superseded' });

    const waiting = webhook(own);
    waiting.append('user_message');
    waiting.failed(0);
    expect(waiting.send({ type: 'session.erased' })).toEqual([{ type: 'disarm', key: 'r1-due' }]);
  });
});
