import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import { noteText } from '#shared/lifecycle/heap.ts';
import { pageBody } from './page-body.ts';

vi.mock('#shared/lifecycle/heap.ts', { spy: true });

/** Event texts that a parse and a write would change, and characters of one to four bytes. */
const EVENT = '{ "text" : "sp\\u0061ced \u20ac \u{1f600} \u00e4 \\"q\\"", "n":12345678901234567890.0001e2, "m":1e400, "none":"" }';
const piecesOf = (count: number, characters: number) => Array.from({ length: count }, () => EVENT.padEnd(characters));

async function textOf(body: string | Buffer | Readable): Promise<string> {
  if (typeof body === 'string') return body;
  return (body instanceof Readable ? await buffer(body) : body).toString();
}

describe('the body of a page', () => {
  it.each([
    ['of no events', []],
    ['of a short piece', piecesOf(1, 0)],
    ['of a few short pieces', piecesOf(3, 0)],
    ['of one long piece', piecesOf(1, 100_000)],
    ['of some long pieces', piecesOf(3, 60_000)],
    ['of many long pieces', piecesOf(40, 60_000)],
    ['of one event that is longer than all pieces of others', piecesOf(1, 1_000_000)],
  ])('%s is the array of its events, byte for byte', async (_, pieces) => {
    expect(await textOf(pageBody(pieces))).toBe(`[${pieces.join(',')}]`);
  });

  it('has its length noted for the heap', () => {
    vi.mocked(noteText).mockClear();
    pageBody(piecesOf(3, 60_000));

    expect(vi.mocked(noteText).mock.calls).toEqual([[180_000]]);
  });

  it('leaves each tick of the event loop to others after a piece, where it is long', async () => {
    let ticks = 0;
    let isOver = false;
    const count = () => {
      ticks += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await textOf(pageBody(piecesOf(20, 60_000)));
    isOver = true;

    expect(ticks).toBeGreaterThanOrEqual(20);
  });
});
