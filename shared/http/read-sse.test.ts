import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readSse, SseOverflow } from './read-sse.ts';

const LIMIT = { maxEventChars: 1_000 };

async function* inPieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function dataOf(text: string, sizes: readonly number[] = [1_000_000], limit = LIMIT): Promise<string[]> {
  const data: string[] = [];
  for await (const batch of readSse(inPieces(Buffer.from(text), sizes), limit)) data.push(...batch.map((event) => event.data));
  return data;
}

describe('readSse', () => {
  it('refuses an event that never ends', async () => {
    await expect(dataOf(`data: ${'x'.repeat(2_000)}`, [64])).rejects.toBeInstanceOf(SseOverflow);
  });

  it('refuses an event of many lines that never ends', async () => {
    await expect(dataOf('data: xxxxxxxxxxxxxxxx\n'.repeat(200), [64])).rejects.toBeInstanceOf(SseOverflow);
  });

  it('passes on what the body throws', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('data: a\n\n');
      throw new Error('cut');
    }
    const read = async () => {
      for await (const batch of readSse(broken(), LIMIT)) expect(batch).toEqual([{ event: null, data: 'a' }]);
    };
    await expect(read()).rejects.toThrow('cut');
  });

  it('gives all events of one read as one batch, and an empty batch for a comment', async () => {
    const batches: unknown[] = [];
    async function* reads(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(': waiting\n\n');
      yield Buffer.from('event: ping\ndata: 1\n\ndata: 2\n\nda');
      yield Buffer.from('ta: 3\n\n');
    }
    for await (const batch of readSse(reads(), LIMIT)) batches.push(batch.map(({ event, data }) => `${event} ${data}`));
    expect(batches).toEqual([[], ['ping 1', 'null 2'], ['null 3']]);
  });

  it('gives the last event even when its empty line is missing', async () => {
    expect(await dataOf('data: a\n\ndata: [DONE]')).toEqual(['a', '[DONE]']);
  });

  it('reads the same events however the network cuts the bytes, with any line ending, in any script', async () => {
    const values = fc.array(
      fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ' ').trimStart()),
      { maxLength: 8 },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(values, sizes, fc.constantFrom('\n', '\r\n', '\r'), async (texts, cuts, newline) => {
        const stream = texts.map((text) => `data: ${text}${newline}${newline}`).join('');
        expect(await dataOf(stream, cuts)).toEqual(texts);
      }),
      { numRuns: 200 },
    );
  });
});
