import { describe, expect, it } from 'vitest';
import { behindEvents, bodyFrame, errorFrame, readFrame, sseFrame, textFrame } from './frame.ts';

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
    ['an error without a body', 'e500\n'],
    ['an error whose body has no end', 'e500\n{}'],
  ])('is null for %s', (_, text) => {
    expect(readFrame(CALL, Buffer.from(text))).toBeNull();
  });

  it.each(['open', 'content', 'done'] as const)(
    'reads the attempt and the sequence of a frame that is %s, and returns the bytes for the client unchanged',
    (kind) => {
      const frame = readFrame(CALL, sseFrame(kind, CALL, 12, 345_678_901, EVENTS));

      expect(frame).toMatchObject({ kind, attempt: 12, seq: 345_678_901 });
      expect(textOf(frame?.kind === kind ? frame.sse : undefined)).toBe(`id: ${CALL}.12.345678901\n${EVENTS}`);
    },
  );

  it('reads a text', () => {
    const frame = readFrame(CALL, textFrame(2, 17, '"\\n.\u{1f600}"'));
    if (frame?.kind !== 'text') throw new Error('not the frame of a text');

    expect([frame.attempt, frame.seq, textOf(frame.json)]).toEqual([2, 17, '"\\n.\u{1f600}"']);
  });

  it('reads both forms of an error', () => {
    const frame = readFrame(CALL, errorFrame(CALL, 1, 7, 502, '{"error":{"code":502}}', EVENTS));
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
    const content = sseFrame('content', CALL, 1, 1, EVENTS);
    const error = errorFrame(CALL, 1, 2, 500, '{}', EVENTS);
    const [first, second] = [readFrame(CALL, content), readFrame(CALL, error)];
    if (first?.kind !== 'content' || second?.kind !== 'error') throw new Error('not the frames that were made');

    expect([first.sse.buffer, first.sse.byteOffset]).toEqual([content.buffer, content.byteOffset + 1]);
    expect([second.body.buffer, second.body.byteOffset]).toEqual([error.buffer, error.byteOffset + 'e500\n'.length]);
    expect([second.sse.buffer, second.sse.byteOffset]).toEqual([error.buffer, error.byteOffset + 'e500\n{}\n'.length]);
  });
});

describe('behindEvents', () => {
  const frame = readFrame(CALL, sseFrame('done', CALL, 1, 7, `${EVENTS}data: {}\n\ndata: [DONE]\n\n`));
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
