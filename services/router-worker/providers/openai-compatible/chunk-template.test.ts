import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '../provider.ts';
import { upstreamChunk } from './chunk.ts';
import { ChunkTemplate } from './chunk-template.ts';
import { partsOfStream } from './parts-of-body.ts';
import { PartReader } from './to-parts.ts';

const saying = (content: string, fields: object = {}) =>
  JSON.stringify({ id: 'c1', ...fields, choices: [{ index: 0, delta: { content }, finish_reason: null }] });

function taughtBy(...chunks: string[]): ChunkTemplate {
  const template = new ChunkTemplate();
  for (const data of chunks) template.compile(data, upstreamChunk.parse(JSON.parse(data)));
  return template;
}

describe('ChunkTemplate', () => {
  it.each([
    ['an escaped text', saying('a\n')],
    ['an empty text', saying('')],
    ['two texts in one', '{"id":"c1","choices":[{"index":0,"delta":{"content":"a","content":"b"},"finish_reason":null}]}'],
    ['the end', JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] })],
    ['another answer', saying('a', { id: 'c2' })],
    ['less than the template', '{"id":"c1","choices":[{"index":0,"delta":{"content":""}'],
    ['no JSON', 'a'],
  ])('leaves %s to be parsed', (_, data) => {
    expect(taughtBy(saying('x')).textOf(data)).toBeNull();
  });

  it.each([
    ['more than a text', JSON.stringify({ choices: [{ index: 0, delta: { content: 'x', reasoning: 'y' } }] })],
    ['another choice', JSON.stringify({ choices: [{ index: 1, delta: { content: 'x' } }] })],
    ['an end', JSON.stringify({ choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }] })],
    ['usage', saying('x', { usage: { prompt_tokens: 1 } })],
    ['an error', saying('x', { error: 'x' })],
    ['a text that is written in another way, and stands elsewhere too', '{"id":"x","choices":[{"delta":{"content":"\\u0078"}}]}'],
    ['a text that stands elsewhere first', '{"id":"x","choices":[{"delta":{"content":"x"}}]}'],
  ])('learns nothing from %s', (_, data) => {
    const template = taughtBy(data);
    expect([template.textOf(data), template.textOf(data.replace(/x|\\u0078/g, 'z'))]).toEqual([null, null]);
  });

  it('reads the text of a chunk that differs in nothing else', () => {
    expect(taughtBy(saying('x')).textOf(saying('Grüße, {"}'.replace('"', '')))).toBe('Grüße, {}');
  });

  it('tries a few chunks and no more', () => {
    const random = (index: number) => saying('x', { obfuscation: `o${index}` });
    const template = taughtBy(random(0), random(1), random(2), random(3), random(4));
    expect([template.textOf(random(3)), template.textOf(random(4))]).toEqual(['x', null]);
  });

  it('reads from any chunks of an answer what parsing each of them reads', () => {
    const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.constantFrom('c1', 'x', 'stop', '"', '\\', '\n', 'a b'));
    const chunk = fc.oneof(
      { weight: 6, arbitrary: text.map((content) => saying(content)) },
      text.map((content) => saying(content, { id: content })),
      text.map((content) => saying(content).replace('"content":', ' "content" : ')),
      text.map((reasoning) => JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: { reasoning, content: reasoning } }] })),
    );
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 8 }), (chunks) => {
        const events = chunks.map((data) => ({ event: null, data }));
        const one = new PartReader();
        const each = events.map((event) => new PartReader().readEvents([event]));
        expect(one.readEvents(events)).toEqual(each.flat());
      }),
      { numRuns: 1_000 },
    );
  });

  it('reads a piece that is one event without splitting it', () => {
    const template = taughtBy(saying('x'));
    const pieceOf = (text: string) => Buffer.from(text);
    const event = `data: ${saying('Two words.')}\n\n`;
    expect(template.textIn(pieceOf(event))).toBe('Two words.');
    const others = [event + event, event.slice(1), event.slice(0, -1), `${event}\n`, `data: ${saying('a', { id: 'c2' })}\n\n`];
    const texts = ['', 'Grüße', 'a\n', 'a"', 'a\\', '\u007f'].map((text) => `data: ${saying(text)}\n\n`);
    for (const other of [...others, ...texts]) expect(template.textIn(pieceOf(other)), other).toBeNull();
  });

  it('does not read pieces when an event has more than one line', () => {
    const data = saying('x').replace('{', '{\n');
    const template = taughtBy(data);
    expect([template.textOf(data), template.textIn(Buffer.from(`data: ${data}\n\n`))]).toEqual(['x', null]);
  });

  it('does not read as an event what continues a line', () => {
    const read = partsOfStream(new PartReader());
    const parts = [`data: ${saying('x')}\n\n`, 'data: {"id', `data: ${saying('y')}\n\n`].map((text) => () => read(Buffer.from(text)));
    expect(parts.map((part) => textOf(part()))).toEqual(['x', '', '']);
  });

  it('reads from any pieces of an answer what reading each event of them reads', () => {
    const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 6 }), fc.string({ maxLength: 6 }), fc.constantFrom('x', '"', '\\', '\n', 'data: '));
    const event = fc.tuple(text, fc.constantFrom('data: ', 'data:', ': hi\n\ndata: ', 'id: 1\ndata: '), fc.constantFrom('\n\n', '\r\n\r\n', '\n\n\n'));
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 20 }), (events, cuts) => {
        const body = events.map(([content, start, end]) => ({ data: saying(content), bytes: Buffer.from(start + saying(content) + end) }));
        const expected = body.flatMap(({ data }) => new PartReader().readEvents([{ event: null, data }]));
        for (const pieces of [body.map(({ bytes }) => bytes), cut(Buffer.concat(body.map(({ bytes }) => bytes)), cuts)]) {
          const read = partsOfStream(new PartReader());
          const parts = [...pieces.flatMap(read), ...read(null)];
          expect(textOf(parts)).toBe(textOf(expected));
        }
      }),
      { numRuns: 500 },
    );
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
  return parts.map((part) => (part.type === 'text-delta' ? part.text : part.type)).join('');
}
