import { describe, expect, it } from 'vitest';
import { behindEvents, bodyFrame, errorFrame, readFrame, sseFrame, templateFrame, textFrame } from './frame.ts';

const CALL = 'gen-gw1-01ARZ3NDEKTSV4RRFFQ69G5FAV-tag';
const EVENTS = 'data: {"text":"h\u00e9\u{1f600}"}\n\n';

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

describe('readFrame', () => {
  it.each([
    ['nothing', ''],
    ['an unknown kind', `xid: ${CALL}.1.1\n`],
    ['a kind alone', 'c'],
    ['no id line', 'cdata: {}\n\n'],
    ["another call's id", `cid: ${CALL.replace('gw1', 'gw2')}.1.1\n`],
    ['a call id that only begins like ours', `cid: ${CALL}x.1.1\n`],
    ['no attempt', `cid: ${CALL}..1\n`],
    ['no sequence', `cid: ${CALL}.1.\n`],
    ['one number only', `cid: ${CALL}.1\ndata: 1.2\n\n`],
    ['an id line that never ends', `cid: ${CALL}.1.1`],
    ['letters in the attempt', `cid: ${CALL}.1a.1\n`],
    ['letters in the sequence', `cid: ${CALL}.1.1a\n`],
    ['a sign in the sequence', `cid: ${CALL}.1.-1\n`],
    ['attempt 0', `cid: ${CALL}.0.1\n`],
    ['sequence 0', `cid: ${CALL}.1.0\n`],
    ['a number that is too long', `cid: ${CALL}.1.1234567890\n`],
    ['a text without numbers', 't"a"'],
    ['a text without a sequence', 't1\n"a"'],
    ['a text of attempt 0', 't0.1\n"a"'],
    ['a text whose first line never ends', 't1.2'],
    ['a body without a status', 'b\n{}'],
    ['a body whose status is no number', 'bok\n{}'],
    ['a body without an end of its status', 'b200'],
    ['a template without sizes', `s\n`],
    ['a template of no size', `s0.3\nabcid: ${CALL}.1.1\n`],
    ['a template that is cut off', 's9.9\nab'],
    ['a template with other bytes behind it than the id', `s1.1\nabcid: ${CALL}.1.1\n`],
    ['an error without a body', 'e500\n'],
    ['an error whose body has no end', 'e500\n{}'],
  ])('is null for %s', (_, text) => {
    expect(readFrame(CALL, Buffer.from(text))).toBeNull();
  });

  it.each([
    ['o', 'open'],
    ['m', 'content'],
    ['c', 'content'],
    ['d', 'done'],
  ] as const)('reads the attempt and the sequence of a frame `%s`, which is %s, and returns the bytes for the client unchanged', (letter, kind) => {
    const frame = readFrame(CALL, sseFrame(letter, { callId: CALL, attempt: 12, seq: 345_678_901 }, EVENTS));

    expect(frame).toMatchObject({ kind, attempt: 12, seq: 345_678_901 });
    expect(textOf(frame?.kind === kind ? frame.sse : undefined)).toBe(`id: ${CALL}.12.345678901\n${EVENTS}`);
  });

  it('reads a text', () => {
    const frame = readFrame(CALL, textFrame({ callId: CALL, attempt: 2, seq: 17 }, '"\\n.\u{1f600}"'));
    if (frame?.kind !== 'text') throw new Error('not the frame of a text');

    expect([frame.attempt, frame.seq, textOf(frame.text)]).toEqual([2, 17, '"\\n.\u{1f600}"']);
  });

  it('reads the template that content states, whatever its bytes are', () => {
    const template = { prefix: 'data: {"\n\u{1f600}', suffix: '"}\n\n' };
    const frame = readFrame(CALL, templateFrame({ callId: CALL, attempt: 2, seq: 3 }, template, EVENTS));
    if (frame?.kind !== 'content' || frame.template === null || frame.template === 'unstated') throw new Error('not a frame with a template');

    expect([frame.attempt, frame.seq, textOf(frame.sse)]).toEqual([2, 3, `id: ${CALL}.2.3\n${EVENTS}`]);
    expect([textOf(frame.template.prefix), textOf(frame.template.suffix)]).toEqual([template.prefix, template.suffix]);
  });

  it('reads a frame of a logged call as that of any other', () => {
    const at = { callId: CALL, attempt: 1, seq: 2 };
    const logged = { ...at, isLogged: true };
    for (const make of [
      (address: typeof at) => sseFrame('m', address, EVENTS),
      (address: typeof at) => textFrame(address, '"a"'),
      (address: typeof at) => errorFrame(address, 500, '{}', EVENTS),
    ]) {
      expect(make(logged)[0]).toBe((make(at)[0] ?? 0) - 32);
      expect(readFrame(CALL, make(logged))).toEqual(readFrame(CALL, make(at)));
    }
  });

  it('reads both forms of an error', () => {
    const frame = readFrame(CALL, errorFrame({ callId: CALL, attempt: 1, seq: 7 }, 502, '{"error":{"code":502}}', EVENTS));
    if (frame?.kind !== 'error') throw new Error('not an error frame');

    expect(frame.status).toBe(502);
    expect(textOf(frame.body)).toBe('{"error":{"code":502}}');
    expect(textOf(frame.sse)).toBe(`id: ${CALL}.1.7\n${EVENTS}`);
  });

  it('reads a whole answer, line ends and all', () => {
    const frame = readFrame(CALL, bodyFrame(200, '{"a":1}\n\n{"b":"\u{1f600}"}'));
    if (frame?.kind !== 'body') throw new Error('not a body frame');

    expect(frame.status).toBe(200);
    expect(textOf(frame.body)).toBe('{"a":1}\n\n{"b":"\u{1f600}"}');
  });

  it('DESIGN 7: a frame is read without a copy: what is returned are views of its bytes', () => {
    const content = sseFrame('c', { callId: CALL, attempt: 1, seq: 1 }, EVENTS);
    const error = errorFrame({ callId: CALL, attempt: 1, seq: 2 }, 500, '{}', EVENTS);
    const [first, second] = [readFrame(CALL, content), readFrame(CALL, error)];
    if (first?.kind !== 'content' || second?.kind !== 'error') throw new Error('not the frames that were made');

    expect([first.sse.buffer, first.sse.byteOffset]).toEqual([content.buffer, content.byteOffset + 1]);
    expect([second.body.buffer, second.body.byteOffset]).toEqual([error.buffer, error.byteOffset + 'e500\n'.length]);
    expect([second.sse.buffer, second.sse.byteOffset]).toEqual([error.buffer, error.byteOffset + 'e500\n{}\n'.length]);
  });
});

describe('behindEvents', () => {
  const frame = readFrame(CALL, sseFrame('d', { callId: CALL, attempt: 1, seq: 7 }, `${EVENTS}data: {}\n\ndata: [DONE]\n\n`));
  if (frame?.kind !== 'done') throw new Error('not the end of a stream');
  const { sse } = frame;

  it('finds a separate id on each event of a frame', () => {
    expect(textOf(sse)).toBe(`id: ${CALL}.1.7\n${EVENTS}id: ${CALL}.1.7.2\ndata: {}\n\nid: ${CALL}.1.7.3\ndata: [DONE]\n\n`);
  });

  it.each([
    [0, textOf(sse)],
    [1, `id: ${CALL}.1.7.2\ndata: {}\n\nid: ${CALL}.1.7.3\ndata: [DONE]\n\n`],
    [2, `id: ${CALL}.1.7.3\ndata: [DONE]\n\n`],
    [3, ''],
    [1_000_000, ''],
  ])('leaves what follows the first %i events, without a copy', (events, expected) => {
    const rest = behindEvents(sse, events);

    expect(textOf(rest)).toBe(expected);
    expect(rest.buffer).toBe(sse.buffer);
  });
});
