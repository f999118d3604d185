import { beforeEach, describe, expect, it } from 'vitest';
import { attemptOf } from '#bus/messages/attempt-number.ts';
import { bodyFrame, errorFrame, sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import { firstFrames } from '#bus/messages/test-support/first-frames.ts';
import { ulid } from '#shared/ids.ts';
import type { LoggedEvent } from '../feed/session-log.ts';
import { limits } from '../limits.ts';
import { until } from '../test-support/until.ts';
import { SessionReplies } from './session-replies.ts';

const TURN_AT_MS = Date.UTC(2026, 0, 1);
const TURN = `trn_${ulid(TURN_AT_MS)}`;
const CALL = `${TURN}-1`;
const MESSAGE = CALL.replace('trn_', 'evt_');

let shown: { event: string; data: Record<string, unknown> }[];
let replayed: Uint8Array[];
let replies: SessionReplies;
beforeEach(() => {
  shown = [];
  replayed = [];
  replies = new SessionReplies({
    emit: (sse) => shown.push(parsed(sse)),
    replay: async () => replayed,
  });
});

function parsed(sse: string) {
  const [, event, data] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(sse) ?? [];
  return { event: event ?? '', data: JSON.parse(data ?? '{}') as Record<string, unknown> };
}

/** Content states the template of texts. */
function content(seq: number, text: string, { call = CALL, attempt = 1 } = {}): Uint8Array {
  return templateFrame({ callId: call, attempt, seq, isLogged: true }, { prefix: '{', suffix: '}' }, partsOf(text));
}

const partsOf = (...texts: string[]) => texts.map((text) => `data: ${JSON.stringify({ type: 'text-delta', text })}\n\n`).join('');

function opening({ call = CALL, attempt = 1 } = {}): Uint8Array {
  return sseFrame('o', { callId: call, attempt, seq: 1, isLogged: true }, 'data: {"type":"debug","upstreamBody":{}}\n\n');
}

function logged(fields: { kind: string; id?: string; status?: string; atMs?: number }): LoggedEvent {
  const { kind, id = `evt_${ulid()}`, status, atMs = TURN_AT_MS + 1_000 } = fields;
  const text = JSON.stringify({ kind, id, status, created_at: new Date(atMs).toISOString() });
  return { offset: 1, id, kind, source: 'ai_agent', traceId: 't', text };
}

const delta = (seq: number, text: string, message = MESSAGE) => ({ event: 'delta', data: { message_id: message, seq, text } });
const snapshot = (seq: number, text: string, message = MESSAGE) => ({ event: 'snapshot', data: { message_id: message, seq, text } });
const cancelled = (seq: number, message = MESSAGE) => ({ event: 'delta', data: { message_id: message, seq, cancelled: true } });

describe('tokens that are not shown', () => {
  it.each([
    ['bytes that are no frame', Buffer.from('nonsense')],
    ['a frame of another call', content(1, 'x', { call: 'trn_other-1' })],
    ['a whole body', bodyFrame(200, '{}')],
    ['a failure', errorFrame({ callId: CALL, attempt: 1, seq: 1 }, 502, '{}', partsOf('x'))],
    ['data that is no part', sseFrame('m', { callId: CALL, attempt: 1, seq: 1 }, 'data: {"type": 7}\n\ndata: [DONE]\n\n')],
    ['data that is no chunk', sseFrame('c', { callId: CALL, attempt: 1, seq: 1 }, 'data: {"choices": 7}\n\ndata: [DONE]\n\n')],
    ['a text that is no JSON', textFrame({ callId: CALL, attempt: 1, seq: 1 }, '"x')],
    ['a text that is none', textFrame({ callId: CALL, attempt: 1, seq: 1 }, '{"x":1}')],
    ['a comment', sseFrame('m', { callId: CALL, attempt: 1, seq: 1 }, ': data: nothing\n\n')],
  ])('shows nothing of %s', (_case, bytes) => {
    replies.onFrame(CALL, bytes);

    expect(shown).toEqual([]);
  });

  it('DESIGN 7: tokens behind the stored message of their reply are dropped', () => {
    replies.onFrame(CALL, content(1, 'Hel'));
    replies.observe(logged({ kind: 'assistant_message', id: MESSAGE }), true);
    replies.onFrame(CALL, content(2, 'lo'));

    expect(shown).toEqual([delta(1, 'Hel')]);
    expect(replies.snapshots()).toEqual([]);
  });

  it('drops everything of a reply whose message was in the log before its first token', () => {
    replies.observe(logged({ kind: 'assistant_message', id: MESSAGE }), false);
    replies.onFrame(CALL, content(1, 'Hello'));

    expect(shown).toEqual([]);
  });

  it.each(['cancelled', 'error', 'ready'])('drops tokens of a turn that has ended as %s, even the first ones', (status) => {
    replies.observe(logged({ kind: 'status', status }), true);
    replies.onFrame(CALL, content(1, 'Hello'));

    expect(shown).toEqual([]);
  });

  it('drops tokens of a call that a later one of the same turn has replaced', () => {
    replies.onFrame(`${TURN}-2`, content(1, 'new', { call: `${TURN}-2` }));
    replies.onFrame(CALL, content(1, 'old'));

    expect(shown).toEqual([delta(1, 'new', MESSAGE.replace(/1$/, '2'))]);
  });

  it('drops repeated frames and those of a superseded worker', () => {
    replies.onFrame(CALL, content(1, 'a', { attempt: 2 }));
    replies.onFrame(CALL, content(1, 'a', { attempt: 2 }));
    replies.onFrame(CALL, content(2, 'late', { attempt: 1 }));

    expect(shown).toEqual([delta(1, 'a')]);
  });

  it('stops at a text that is too long, and sends nothing more of that reply', () => {
    replies.onFrame(CALL, content(1, 'x'.repeat(limits.replyCharacters)));
    replies.onFrame(CALL, content(2, 'y'));
    replies.onFrame(CALL, content(3, 'z'));

    expect(shown).toHaveLength(1);
  });

  it('stores only the latest replies that have ended', () => {
    const ended = Array.from({ length: limits.endedReplies + 1 }, (_, n) => `trn_${n}-1`);
    for (const callId of ended) replies.observe(logged({ kind: 'assistant_message', id: callId.replace('trn_', 'evt_') }), true);

    for (const callId of ended) replies.onFrame(callId, content(1, callId, { call: callId }));

    expect(shown).toEqual([delta(1, 'trn_0-1', 'evt_0-1')]);
  });
});

describe('a reply in progress', () => {
  it('is shown piece by piece, numbered from 1', () => {
    replies.onFrame(CALL, opening());
    replies.onFrame(CALL, content(2, 'Hel'));
    replies.onFrame(CALL, content(3, 'lo \u{1f600}\n'));
    replies.onFrame(CALL, sseFrame('d', { callId: CALL, attempt: 1, seq: 4, isLogged: true }, 'data: {"type":"done","finishReason":"stop"}\n\n'));

    expect(shown).toEqual([delta(1, 'Hel'), delta(2, 'lo \u{1f600}\n')]);
  });

  it('is shown the same whether its tokens came as whole parts or as texts', () => {
    replies.onFrame(CALL, content(1, 'Hel'));
    replies.onFrame(CALL, textFrame({ callId: CALL, attempt: 1, seq: 2 }, JSON.stringify('lo "\u{1f600}"\n')));

    expect(shown).toEqual([delta(1, 'Hel'), delta(2, 'lo "\u{1f600}"\n')]);
  });

  it('sends all parts of a frame together', () => {
    replies.onFrame(
      CALL,
      sseFrame('m', { callId: CALL, attempt: 1, seq: 1 }, `${partsOf('a')}data: {"type":"reasoning-delta","text":"hm"}\n\n${partsOf('b')}`),
    );

    expect(shown).toEqual([delta(1, 'ab')]);
  });

  it('is shown the same when a worker of the release before writes public chunks', () => {
    for (const frame of firstFrames(CALL, { created: 7, model: 'a/one', provider: 'East' }, 1, ['Hel', 'lo "\u{1f600}"\n'])) replies.onFrame(CALL, frame);

    expect(shown).toEqual([delta(1, 'Hel'), delta(2, 'lo "\u{1f600}"\n')]);
  });

  it('is sent to a later reader as the text so far', () => {
    replies.onFrame(CALL, content(1, 'Hel'));
    replies.onFrame(CALL, content(2, 'lo'));

    expect(replies.snapshots().map(parsed)).toEqual([snapshot(2, 'Hello')]);
  });

  it('DESIGN 7: a text that was sent is replaced when another worker begins its reply anew', () => {
    replies.onFrame(CALL, content(1, 'Hello wor'));
    replies.onFrame(CALL, opening({ attempt: 2 }));
    replies.onFrame(CALL, content(2, 'Good', { attempt: 2 }));
    replies.onFrame(CALL, content(3, ' day', { attempt: 2 }));

    expect(shown).toEqual([delta(1, 'Hello wor'), snapshot(2, 'Good'), delta(3, ' day')]);
  });

  it('is that of one worker where two have the same delivery: the first that sent a text', () => {
    const [first, second] = [attemptOf(1, 7), attemptOf(1, 8)];
    replies.onFrame(CALL, opening({ attempt: first }));
    replies.onFrame(CALL, content(1, 'Hel', { attempt: second }));
    replies.onFrame(CALL, content(2, 'Good', { attempt: first }));
    replies.onFrame(CALL, content(2, 'lo', { attempt: second }));

    expect(shown).toEqual([delta(1, 'Hel'), delta(2, 'lo')]);
  });

  it.each(['cancelled', 'error', 'ready'])('ends with an event to its readers when the turn ends as %s without a message', (status) => {
    replies.onFrame(CALL, content(1, 'Hel'));
    replies.observe(logged({ kind: 'status', status }), true);
    replies.onFrame(CALL, content(2, 'lo'));

    expect(shown).toEqual([delta(1, 'Hel'), cancelled(2)]);
  });

  it('ends without an event when nothing of it was sent', () => {
    replies.onFrame(CALL, opening());
    replies.observe(logged({ kind: 'status', status: 'cancelled' }), true);

    expect(shown).toEqual([]);
  });

  it('ends when a later call of its turn replaces it', () => {
    replies.onFrame(CALL, content(1, 'old'));
    replies.onFrame(`${TURN}-2`, content(1, 'new', { call: `${TURN}-2` }));

    expect(shown).toEqual([delta(1, 'old'), cancelled(2), delta(1, 'new', MESSAGE.replace(/1$/, '2'))]);
  });

  it('goes on when a reader reads the ends of earlier turns', () => {
    replies.onFrame(CALL, content(1, 'Hel'));
    replies.observe(logged({ kind: 'status', status: 'ready', atMs: TURN_AT_MS - 1 }), false);
    replies.observe(logged({ kind: 'status', status: 'typing' }), true);
    replies.observe(logged({ kind: 'user_message' }), true);
    replies.onFrame(CALL, content(2, 'lo'));

    expect(shown).toEqual([delta(1, 'Hel'), delta(2, 'lo')]);
  });

  it('goes on when its tokens have overtaken the end of the turn before', () => {
    replies.onFrame(CALL, content(1, 'Hel'));
    replies.observe(logged({ kind: 'status', status: 'cancelled', atMs: TURN_AT_MS }), true);
    replies.onFrame(CALL, content(2, 'lo'));

    expect(shown).toEqual([delta(1, 'Hel'), delta(2, 'lo')]);
  });
});

describe('lost frames', () => {
  it('are fetched, and the text is sent whole', async () => {
    replayed = [opening(), content(2, 'Hel'), content(3, 'lo'), textFrame({ callId: CALL, attempt: 1, seq: 4 }, '" wor"')];
    replies.onFrame(CALL, textFrame({ callId: CALL, attempt: 1, seq: 4 }, '" wor"'));
    replies.onFrame(CALL, content(5, 'ld'));
    await until(() => shown.length > 0, 'the text so far');
    replies.onFrame(CALL, content(6, '!'));

    expect(shown).toEqual([snapshot(1, 'Hello world'), delta(2, '!')]);
  });

  it('are fetched in the middle of a reply too', async () => {
    replies.onFrame(CALL, content(1, 'a'));
    replayed = [content(1, 'a'), content(2, 'b'), content(3, 'c')];
    replies.onFrame(CALL, content(3, 'c'));
    await until(() => shown.length > 1, 'the text so far');

    expect(shown).toEqual([delta(1, 'a'), snapshot(2, 'abc')]);
  });

  it('that are retained a little later are found by a later fetch', async () => {
    const asked: string[] = [];
    const patient = new SessionReplies({
      emit: (sse) => shown.push(parsed(sse)),
      replay: async (_, upTo) => {
        asked.push(upTo);
        return asked.length < 3 ? [content(1, 'a')] : [content(1, 'a'), content(2, 'b')];
      },
    });
    patient.onFrame(CALL, content(3, 'c'));
    await until(() => shown.length > 0, 'the text so far');

    expect(shown).toEqual([snapshot(1, 'abc')]);
    expect(asked).toEqual(['kept', 'now', 'now']);
  });

  it('are not fetched again when the session has no reader any more', async () => {
    let readings = 0;
    const left = new SessionReplies({
      emit: (sse) => shown.push(parsed(sse)),
      replay: async () => {
        readings += 1;
        left.close();
        return [];
      },
    });
    left.onFrame(CALL, content(3, 'c'));
    await until(() => readings > 0, 'the first reading');
    await new Promise((resolve) => setImmediate(resolve));

    expect(readings).toBe(1);
    expect(shown).toEqual([]);
  });

  it('that are not available end the deltas of their reply, not its message', async () => {
    replies.onFrame(CALL, content(1, 'a'));
    replies.onFrame(CALL, content(3, 'c'));
    await until(() => replies.snapshots().length === 0, 'the end of the deltas');
    replies.onFrame(CALL, content(4, 'd'));

    expect(shown).toEqual([delta(1, 'a')]);
  });

  it('are not used when the turn ends meanwhile', async () => {
    let give: (frames: Uint8Array[]) => void = () => {};
    const asked = new Promise<Uint8Array[]>((resolve) => {
      give = resolve;
    });
    const slow = new SessionReplies({ emit: (sse) => shown.push(parsed(sse)), replay: () => asked });
    slow.onFrame(CALL, content(2, 'b'));
    slow.observe(logged({ kind: 'status', status: 'cancelled' }), true);
    give([content(1, 'a'), content(2, 'b')]);
    await asked;

    expect(shown).toEqual([]);
  });
});
