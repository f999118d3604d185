import { describe, expect, it } from 'vitest';
import { sseFrame, textFrame } from './frame.ts';
import { DELTA_END, DELTA_START, FrameReader } from './frame-reader.ts';

const CALL = 'gen-gw1-01ARZ3NDEKTSV4RRFFQ69G5FAV-tag';
/** A model name that looks like the end of a head; JSON escapes its quotes. */
const HEAD = `{"id":"${CALL}","model":${JSON.stringify('odd","choices":[ \u00e9\u{1f600}')}`;

const event = (text: string, head = HEAD) => `data: ${head}${DELTA_START}{"content":${JSON.stringify(text)}}${DELTA_END}`;
const content = (seq: number, text: string, { attempt = 1, head = HEAD } = {}) => sseFrame('content', CALL, attempt, seq, event(text, head));

function read(reader: FrameReader, bytes: Uint8Array): string | undefined {
  const frame = reader.read(bytes);
  return frame?.kind === 'content' ? Buffer.from(frame.sse).toString() : frame?.kind;
}

describe('a text', () => {
  it('has no template as long as no frame has brought one', () => {
    const reader = new FrameReader(CALL);
    expect(reader.read(textFrame(3, 2, '"a"'))).toEqual({ kind: 'headless', attempt: 3, seq: 2 });
    reader.read(content(1, 'a', { attempt: 1 }));
    expect(reader.read(textFrame(3, 2, '"a"'))).toEqual({ kind: 'headless', attempt: 3, seq: 2 });
    reader.read(content(1, 'a', { attempt: 3 }));
    expect(reader.read(textFrame(1, 2, '"of a worker that lost the call"'))?.kind).toBe('headless');
  });

  it.each([
    ['no chunk', 'data: anything\n\n'],
    ['a chunk without choices', 'data: {"id":"a"}\n\n'],
    ['a chunk behind a comment', `: comment\n\n${event('a')}`],
    ['a chunk behind one without choices', `data: {"id":"a"}\n\n${event('a')}`],
  ])('is headless behind a frame of content that begins with %s', (_, events) => {
    const reader = new FrameReader(CALL);
    reader.read(sseFrame('content', CALL, 1, 1, events));

    expect(reader.read(textFrame(1, 2, '"b"'))?.kind).toBe('headless');
  });

  it('has no template behind a frame that only opens the stream: another provider may answer', () => {
    const reader = new FrameReader(CALL);
    reader.read(sseFrame('open', CALL, 1, 1, event('a')));

    expect(reader.read(textFrame(1, 2, '"b"'))?.kind).toBe('headless');
  });

  it.each([2, 9, 10, 99, 100, 101, 999_999_999])('becomes the bytes that the frame of a whole chunk has, at sequence %i', (seq) => {
    const reader = new FrameReader(CALL);
    reader.read(content(1, 'a'));
    const text = 'b "c" \n \u00e9\u{1f600}';

    expect(read(reader, textFrame(1, seq, JSON.stringify(text)))).toBe(`id: ${CALL}.1.${seq}\n${event(text)}`);
  });

  it('has the template of its attempt', () => {
    const reader = new FrameReader(CALL);
    const other = HEAD.replace('odd', 'even');
    reader.read(content(1, 'a'));
    reader.read(content(1, 'a', { attempt: 2, head: other }));
    reader.read(content(2, 'of a worker that lost the call'));

    expect(read(reader, textFrame(2, 2, '"b"'))).toBe(`id: ${CALL}.2.2\n${event('b', other)}`);
  });

  it('does not depend on the buffer of its template', () => {
    const reader = new FrameReader(CALL);
    const first = content(1, 'a');
    reader.read(first);
    first.fill(0);

    expect(read(reader, textFrame(1, 2, '"b"'))).toBe(`id: ${CALL}.1.2\n${event('b')}`);
  });

  it.each([
    ['a later frame of content', content(9, 'i')],
    ['the last frame', sseFrame('done', CALL, 1, 9, `${event('')}data: [DONE]\n\n`)],
  ])('has the head that is found in %s, when the first frames are gone', (_, later) => {
    const reader = new FrameReader(CALL);
    const another = content(1, 'x', { attempt: 2, head: HEAD.replace('odd', 'even') });
    reader.seekHead(1, [Buffer.from('nonsense'), textFrame(1, 7, '"g"'), textFrame(1, 8, '"h"'), another, later]);

    expect(read(reader, textFrame(1, 7, '"g"'))).toBe(`id: ${CALL}.1.7\n${event('g')}`);
  });
});

it('bytes that are no frame of the call are refused here too', () => {
  expect(new FrameReader(CALL).read(sseFrame('content', 'another', 1, 1, event('a')))).toBeNull();
});
