import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type SseEvent, SseOverflow, sseReader } from './sse-reader.ts';

const LIMIT = { maxEventChars: 1_000 };

function inPieces(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = sizes[pieces.length % sizes.length] ?? 1;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

function dataOf(text: string, sizes: readonly number[] = [1_000_000]): string[] {
  const pieces = inPieces(Buffer.from(text), sizes);
  const reader = sseReader(LIMIT);
  const events: SseEvent[] = [];
  for (const piece of pieces) events.push(...reader.read(piece));
  return [...events, ...reader.end()].map(({ data }) => data);
}

describe('sseReader', () => {
  it('refuses an event that never ends', () => {
    expect(() => dataOf(`data: ${'x'.repeat(2_000)}`, [64])).toThrow(SseOverflow);
  });

  it('refuses an event of many lines that never ends', () => {
    expect(() => dataOf('data: xxxxxxxxxxxxxxxx\n'.repeat(200), [64])).toThrow(SseOverflow);
  });

  it('returns what came before an event that never ends, and refuses it then', () => {
    const reader = sseReader(LIMIT);
    const [before, endless] = [Buffer.from('data: a\n\n'), Buffer.from(`data: ${'x'.repeat(2_000)}`)];
    expect(reader.read(Buffer.concat([before, endless]))).toEqual([{ event: null, data: 'a' }]);
    expect(() => reader.read(before)).toThrow(SseOverflow);
    expect(() => reader.end()).toThrow(SseOverflow);
  });

  it('returns all events of a piece as one batch, and an empty batch for a comment', () => {
    const reader = sseReader(LIMIT);
    const batches = [': waiting\n\n', 'event: ping\ndata: 1\n\ndata: 2\n\nda', 'ta: 3\n\n'].map((text) =>
      reader.read(Buffer.from(text)).map(({ event, data }) => `${event} ${data}`),
    );
    expect(batches).toEqual([[], ['ping 1', 'null 2'], ['null 3']]);
  });

  it.each([
    ['of two lines', 'data: 1\ndata: 2\n\n', ['1\n2']],
    ['that has a name', 'event: a\ndata: 1\n\n', ['1']],
    ['behind a comment', ': waiting\n\ndata: 1\n\n', ['1']],
    ['with an empty name', 'event: \ndata: 1\n\n', ['1']],
    ['with its name behind the data', 'data: 1\nevent: a\n\n', ['1']],
    ['of two lines that has a name', 'event: a\ndata: 1\ndata: 2\n\n', ['1\n2']],
    ['behind a name without data', 'event: a\n\ndata: 1\n\n', ['1']],
    ['without a space', 'data:1\n\n', ['1']],
    ['with a carriage return in it', 'data: 1\rdata: 2\n\n', ['1\n2']],
    ['without any data', 'data: \n\n', ['']],
    ['behind empty lines', '\n\n\ndata: 1\n\n', ['1']],
    ['with more empty lines behind it', 'data: 1\n\n\n\n', ['1']],
    ['that is cut off', 'data: 1', []],
  ])('reads an event %s between events that come whole', (_, odd, expected) => {
    const reader = sseReader(LIMIT);
    const read = (text: string) => reader.read(Buffer.from(text)).map(({ data }) => data);
    expect(read('data: first\n\ndata: sécond\n\n')).toEqual(['first', 'sécond']);
    expect(read(odd)).toEqual(expected);
    if (expected.length === 0) expect(read('\n\n')).toEqual(['1']);
    expect(read('data: last\n\n')).toEqual(['last']);
  });

  it('reads the name of each event, whether or not the piece is read by the full parser', () => {
    const stream = 'event: start\ndata: 1\n\ndata: 2\n\nevent: stop\ndata: 3\n\n';
    const expected = [
      { event: 'start', data: '1' },
      { event: null, data: '2' },
      { event: 'stop', data: '3' },
    ];
    expect(sseReader(LIMIT).read(Buffer.from(stream))).toEqual(expected);
    expect(sseReader(LIMIT).read(Buffer.from(stream.replaceAll('\n', '\r\n')))).toEqual(expected);
  });

  it('returns the last event even when its empty line is missing', () => {
    expect(dataOf('data: a\n\ndata: [DONE]')).toEqual(['a', '[DONE]']);
  });

  it('skips a byte order mark before the first event, however it is split, and no other', () => {
    expect(dataOf('\uFEFFdata: a\n\ndata: \uFEFFb\n\n', [1])).toEqual(['a', '\uFEFFb']);
  });

  it('reads the same events however the network splits the bytes, with any line ending, in any script', () => {
    const values = fc.array(
      fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ' ').trimStart()),
      { maxLength: 8 },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(values, sizes, fc.constantFrom('\n', '\r\n', '\r'), (texts, cuts, newline) => {
        const stream = texts.map((text) => `data: ${text}${newline}${newline}`).join('');
        expect(dataOf(stream, cuts)).toEqual(texts);
      }),
      { numRuns: 200 },
    );
  });
});
