import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { PartReader } from '../openai-compatible/to-parts.ts';
import { partsOfStream } from './parts-of-body.ts';

/** As OpenAI sends it, with the padding that differs from chunk to chunk. */
const saying = (content: string, obfuscation: string) =>
  JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }], usage: null, obfuscation });

describe('the parts of a streamed body', () => {
  it('hold each text, wherever the network cuts the body', () => {
    const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.string({ maxLength: 6 }), fc.constantFrom('x', '"', '\\', '\n', 'data: '));
    const event = fc.record({
      content: text,
      pad: text,
      start: fc.constantFrom('data: ', 'data:', ': hi\n\ndata: ', 'id: 1\ndata: '),
      end: fc.constantFrom('\n\n', '\r\n\r\n', '\n\n\n'),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 20 }), (events, cuts) => {
        const bodies = events.map(({ content, pad, start, end }) => Buffer.from(start + saying(content, pad) + end));
        const expected = events.map(({ content }) => content).join('');
        for (const pieces of [bodies, cut(Buffer.concat(bodies), cuts)]) {
          const read = partsOfStream(new PartReader());
          expect(textOf([...pieces.flatMap(read), ...read(null)])).toBe(expected);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('hold nothing of an event that goes on with a broken line', () => {
    const reader = new PartReader();
    const read = partsOfStream(reader);
    const pieces = [`data: ${saying('x', 'p')}\n\n`, 'data: {"id', `data: ${saying('y', 'p')}\n\n`];

    expect(pieces.map((piece) => textOf(read(Buffer.from(piece))))).toEqual(['x', '', '']);
    expect(reader.broken).toBeInstanceOf(SyntaxError);
  });
});

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...pieces, bytes.subarray(at)].filter(({ length }) => length > 0);
}

function textOf(parts: readonly ProviderPart[]): string {
  return parts.map((part) => (part.type === 'text-delta' ? part.text : part.type === 'response-metadata' ? '' : part.type)).join('');
}
