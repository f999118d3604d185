import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SseParser } from './sse-parser.ts';

const parse = (...pieces: string[]) => {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.feed(piece));
};

it('reads events with their id, name and lines of data', () => {
  expect(parse('id: 7\nevent: status\ndata: one\ndata:two\n\ndata\n\n')).toEqual([
    { id: '7', event: 'status', data: 'one\ntwo' },
    { id: null, event: 'message', data: '' },
  ]);
});

it('ignores comments, unknown fields, an event without data and an id with a NUL', () => {
  expect(parse(': ping\n\nretry: 5\nother\n\nevent: status\n\nid: a\0b\ndata: x\n\n')).toEqual([{ id: null, event: 'message', data: 'x' }]);
});

it('ignores a byte order mark at the start alone', () => {
  expect(parse('\uFEFFdata: \uFEFFx\n\n')).toEqual([{ id: null, event: 'message', data: '\uFEFFx' }]);
});

it('keeps an event that is not complete', () => {
  expect(parse('data: x\n')).toEqual([]);
});

it('reads the same however the text is cut, with each kind of line ending', () => {
  const text = 'id: 1\nevent: a\ndata: {"text":"ä b: c"}\n\n: comment\n\ndata: x\ndata:  y\n\n';
  const cuts = fc.array(fc.nat({ max: 2 * text.length }), { maxLength: 8 });

  fc.assert(
    fc.property(fc.constantFrom('\n', '\r\n', '\r'), cuts, (ending, at) => {
      const written = text.replaceAll('\n', ending);
      const edges = [0, ...at.map((one) => Math.min(one, written.length)).sort((one, other) => one - other), written.length];
      const pieces = edges.slice(1).map((edge, index) => written.slice(edges[index], edge));
      expect(parse(...pieces)).toEqual(parse(text));
    }),
  );
});

it('refuses an event without an end instead of storing it for ever', () => {
  const parser = new SseParser();
  const piece = `data: ${'x'.repeat(1_024 * 1_024)}`;

  expect(() => {
    for (let count = 0; count < 20; count += 1) parser.feed(piece);
  }).toThrow(RangeError);
});
