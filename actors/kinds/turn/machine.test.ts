import { describe, expect, it } from 'vitest';
import { initialTransition, transition } from 'xstate';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { decodeSnapshot, MACHINE_VERSION } from '../snapshots.ts';
import { TURN_MACHINE_VERSION, turnMachine } from './machine.ts';
import { composeReply } from './steps/compose-reply.ts';
import type { TurnEvent, TurnEventBody } from './types.ts';

const DEADLINE_AT_MS = 181_000;

const header = {
  ...{ v: 1 as const, type: 'call.completed' as const, sessionId: 'ses_1', commandId: 'trn_1-1', sentAtMs: 0, answerTo: null, traceparent: null },
  ...actorFields('trn_1'),
};

describe('the turn machine', () => {
  it('ignores the result of a call it no longer waits for', () => {
    const [next, actions] = afterEvents({ type: 'message.joined' }, completed('trn_1-1'));

    expect(next.value).toBe('composing');
    expect(actions).toEqual([]);
  });

  it('ignores the failure of a call it no longer waits for', () => {
    const [next, actions] = afterEvents({ type: 'message.joined' }, failed('trn_1-1'));

    expect(next.value).toBe('composing');
    expect(actions).toEqual([]);
  });

  it('ignores the deadline of another turn', () => {
    const [next, actions] = afterEvents({ type: 'turn.deadline', turnId: 'trn_0' });

    expect(next.value).toBe('composing');
    expect(actions).toEqual([]);
  });

  it('appends acknowledged and typing, and no status of matching where nothing is matched, arms its deadline and requests one call when it begins', () => {
    const [next, actions] = started();

    expect(next.value).toBe('composing');
    expect(linesOf(actions)).toEqual(['acknowledged', `timer trn_1-deadline ${DEADLINE_AT_MS}`, 'typing', 'call trn_1-1']);
  });

  it('appends the reply under the id its readers know already, then ready', () => {
    const [next, actions] = afterEvents(completed('trn_1-1'));

    expect(next.status).toBe('done');
    expect(linesOf(actions)).toEqual(['assistant_message evt_1-1 "Two years."', 'ready', 'disarm trn_1-deadline']);
  });

  it('ends as an error, then ready, when the model returns nothing', () => {
    const [next, actions] = afterEvents(completed('trn_1-1', { text: ' \n' }));

    expect(next.value).toBe('failed');
    expect(linesOf(actions)).toEqual(['error(engine_error: the model returned no reply)', 'ready', 'disarm trn_1-deadline']);
  });

  it('ends as an error when the reply was truncated', () => {
    expect(afterEvents(completed('trn_1-1', { finishReason: 'error' }))[0].value).toBe('failed');
  });

  it('ends as an error with a code and no inner detail when the call fails', () => {
    const [, actions] = afterEvents(failed('trn_1-1'));

    expect(linesOf(actions)[0]).toBe('error(engine_error: the model call failed (router.provider_unavailable))');
  });

  it('supersedes its call and requests another when a message joins it, without a status', () => {
    const [next, actions] = afterEvents({ type: 'message.joined' });

    expect(next.value).toBe('composing');
    expect(linesOf(actions)).toEqual(['supersede trn_1-1', 'call trn_1-2']);
  });

  it('supersedes its call and appends cancelled, then ready, when it is cancelled', () => {
    const [, actions] = afterEvents({ type: 'turn.cancel' });

    expect(linesOf(actions)).toEqual(['supersede trn_1-1', 'cancelled', 'ready', 'disarm trn_1-deadline']);
  });

  it.each([{ type: 'turn.deadline' as const, turnId: 'trn_1' }, { type: 'turn.poisoned' as const }])('ends as an error on $type', (event) => {
    const [next, actions] = afterEvents(event);

    expect(next.value).toBe('failed');
    expect(linesOf(actions)[0]).toBe('supersede trn_1-1');
    expect(linesOf(actions).at(-2)).toBe('ready');
  });

  it.each<[string, TurnEventBody, number]>([
    ['a model call that its worker gave up', failed('trn_1-1', 'router.timeout'), DEADLINE_AT_MS],
    ['one that a worker with a fast clock aborted', failed('trn_1-1', 'router.timeout'), DEADLINE_AT_MS - 500],
    ['any other failure of the model call', failed('trn_1-1'), DEADLINE_AT_MS],
    ['an empty reply', completed('trn_1-1', { text: '' }), DEADLINE_AT_MS],
    ['a command that can not be applied', { type: 'turn.poisoned' }, DEADLINE_AT_MS],
  ])('DESIGN 5: ends as the timeout in either order with its timer: %s', (_what, body, atMs) => {
    const deadline = timed({ type: 'turn.deadline', turnId: 'trn_1', atMs: DEADLINE_AT_MS });
    const failure = timed({ ...body, atMs });
    const [endedByFailure, failureFirst] = afterEvents(failure);
    const [endedByTimer, timerFirst] = afterEvents(deadline);
    const logged = (actions: readonly ActionData[]) => linesOf(actions.filter(({ type }) => type === 'fact'));

    expect(logged(failureFirst)).toEqual(['error(turn_timeout: the reply took longer than a turn may take)', 'ready']);
    expect(logged(timerFirst)).toEqual(logged(failureFirst));
    for (const state of [endedByFailure, endedByTimer]) for (const event of [failure, deadline]) expect(transition(turnMachine, state, event)[1]).toEqual([]);
  });

  it('goes on from a snapshot that version 1 has stored, in one model call', () => {
    const machine = { value: 'composing', context: { turnId: 'trn_1', deadlineAtMs: DEADLINE_AT_MS, callNo: 1 } };
    const turn = { ...machine, traceId: 'f'.repeat(32), bundleHash: 'b', traceparent: null, startedAtMs: 1_000 };
    const session = { value: 'responding', context: { mode: 'auto', queue: [], wanted: null, turnId: 'trn_1' } };
    const ofVersion1 = { v: MACHINE_VERSION - (TURN_MACHINE_VERSION - 1) * 100, session, turn, run: null };
    const stored = JSON.parse(JSON.stringify(ofVersion1)) as object;
    const decoded = decodeSnapshot({ id: 'ses_1', partition: 1, snapshot: stored })['turn'] as typeof machine;

    const [next, actions] = transition(turnMachine, turnMachine.resolveState(decoded as never), timed(completed('trn_1-1')));
    expect(linesOf(actions)).toEqual(['assistant_message evt_1-1 "Two years."', 'ready', 'disarm trn_1-deadline']);
    // Its deadline is a timer with a row.
    expect(next.context).toEqual({ ...machine.context, hasDeadlineRow: true });
    expect(actions.at(-1)?.params).toEqual({ key: 'trn_1-deadline' });
  });

  it('stores no more than version 1 where nothing is matched', () => {
    expect(started()[0].context).toEqual({ turnId: 'trn_1', deadlineAtMs: DEADLINE_AT_MS, callNo: 1 });
  });

  it('goes on from a stored snapshot as without the restart', () => {
    const stored: { value: 'composing'; context: never } = JSON.parse(JSON.stringify({ value: started()[0].value, context: started()[0].context }));

    const [next] = transition(turnMachine, turnMachine.resolveState(stored), timed(completed('trn_1-1')));

    expect(next.value).toBe('completed');
  });
});

function started() {
  return initialTransition(turnMachine, { turnId: 'trn_1', atMs: 1_000, timeoutMs: 180_000 });
}

/** The state after all events, and the actions of the last one. */
function afterEvents(...events: (TurnEventBody & { atMs?: number })[]) {
  return events.reduce((step, event) => transition(turnMachine, step[0], timed(event)), started());
}

/** Applied before the deadline, unless `atMs` is given. */
function timed(event: TurnEventBody & { atMs?: number }): TurnEvent {
  return { atMs: 2_000, ...event };
}

function completed(callId: string, { text = 'Two years.', finishReason = 'stop' } = {}) {
  const command = { ...header, callId, text, toolCalls: [], finishReason, model: 'scripted/assistant', provider: 'Scripted', usage: null };
  return { type: 'call.replied' as const, callId, reply: composeReply.read(command) };
}

function failed(callId: string, code: 'router.provider_unavailable' | 'router.timeout' = 'router.provider_unavailable') {
  return { type: 'call.failed' as const, callId, failure: { code, message: 'secret inner detail', details: {} } };
}

type ActionData = { type: string; params?: unknown };

/** Actions in order, as short strings. */
function linesOf(actions: readonly ActionData[]): string[] {
  return actions.map(({ type, params }) => {
    const p = params as Record<string, never> & { content?: Record<string, string | null> };
    if (type === 'fact' && p.content?.['kind'] === 'assistant_message') return `assistant_message ${p['id']} "${p.content['text']}"`;
    if (type === 'fact') {
      const { status, stage, error_detail: detail } = p.content ?? {};
      return `${status}${stage ? `/${stage}` : ''}${detail ? `(${detail})` : ''}`;
    }
    if (type === 'effect') return `call ${p['id']}`;
    if (type === 'timer') return `timer ${p['key']} ${p['atMs']}`;
    return `${type} ${p['id'] ?? p['key']}`;
  });
}
