import { SourceMap } from 'node:module';
import { describe, expect, it } from 'vitest';
import { SourcePositions } from './source-positions.ts';

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const url = 'file:///app/dist/programs/part.js';

/** One number of `mappings`. */
function encoded(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let text = '';
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>>= 5;
  } while (rest > 0);
  return text;
}

/** Lines of segments of 4 or 5 numbers, whose numbers go up and down. */
function someMappings(): string {
  let state = 7;
  const next = (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const last = { source: 0, line: 500, column: 0 };
  let origin = 0;
  const segment = (_: unknown, index: number) => {
    const to = { source: next(3), line: next(1_000), column: next(90) };
    const differences = [to.source - last.source, to.line - origin, to.column - last.column];
    Object.assign(last, to);
    origin = to.line;
    return [index === 0 ? 0 : 1 + next(40), ...differences, ...(next(2) === 0 ? [next(2)] : [])].map(encoded).join('');
  };
  return Array.from({ length: 40 }, () => Array.from({ length: next(6) }, segment).join(',')).join(';');
}

describe('SourcePositions', () => {
  it('finds what the source map of Node finds, at each position', () => {
    const map = { version: 3, file: 'part.js', names: ['a', 'b', 'c'], sources: ['../../a.ts', '../../b.ts', '../../c.ts'], mappings: someMappings() };
    const node = new SourceMap({ ...map, sourceRoot: '', sourcesContent: [] });
    const positions = new SourcePositions(() => JSON.stringify(map));
    const seen = { found: 0, none: 0 };
    const asked: { url: string; line: number; column: number }[] = [];
    const all: (string | null)[] = [];

    for (let line = 1; line <= 41; line += 1) {
      for (let column = 1; column <= 120; column += 1) {
        const entry = node.findEntry(line - 1, column - 1);
        const isThere = 'originalSource' in entry && entry.generatedLine === line - 1;
        const expected = isThere ? `${new URL(entry.originalSource, url).pathname}:${entry.originalLine + 1}:${entry.originalColumn + 1}` : null;
        asked.push({ url, line, column });
        all.push(expected);
        seen[isThere ? 'found' : 'none'] += 1;
      }
    }
    // From the last to the first: a stack is in no order.
    expect(positions.sourcesOf(asked.toReversed())).toEqual(all.toReversed());
    for (const [index, position] of asked.entries()) expect(positions.sourcesOf([position])).toEqual([all[index]]);
    expect(seen.found).toBeGreaterThan(1_000);
    expect(seen.none).toBeGreaterThan(100);
  });

  it('reads the map of a file once for all positions of a stack, and none again for those it knows', () => {
    const read: string[] = [];
    const positions = new SourcePositions((path) => {
      read.push(path);
      return JSON.stringify({ sources: ['../../a.ts'], mappings: 'AAAA;AACA' });
    });
    expect(read).toEqual([]);
    const other = 'file:///app/dist/programs/other.js';
    const stack = [{ url, line: 2, column: 5 }, null, { url: other, line: 1, column: 1 }, { url, line: 1, column: 5 }, { url, line: 2, column: 5 }];
    const sources = ['/app/a.ts:2:1', null, '/app/a.ts:1:1', '/app/a.ts:1:1', '/app/a.ts:2:1'];

    expect(positions.sourcesOf(stack)).toEqual(sources);
    expect(positions.sourcesOf(stack)).toEqual(sources);

    expect(read).toEqual(['/app/dist/programs/part.js.map', '/app/dist/programs/other.js.map']);
  });

  it('keeps the 2,000 positions that were found last', () => {
    let reads = 0;
    const positions = new SourcePositions(() => {
      reads += 1;
      return JSON.stringify({ sources: ['a.ts'], mappings: 'AAAA' });
    });
    const columns = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => ({ url, line: 1, column: from + index }));

    expect(positions.sourcesOf(columns(1, 2_501))).toEqual(new Array(2_500).fill('/app/dist/programs/a.ts:1:1'));
    positions.sourcesOf(columns(501, 2_501));
    expect(reads).toBe(1);
    positions.sourcesOf(columns(500, 501));
    expect(reads).toBe(2);
  });

  it('finds none without a map, in one that is broken, where code has no source or one that is no file, and in modules of Node', () => {
    const mapped = (text: string) => new SourcePositions(() => text).sourcesOf([{ url, line: 1, column: 3 }]);
    const mapOf = (map: object) => mapped(JSON.stringify(map));

    expect(mapped('{')).toEqual([null]);
    expect(mapped('null')).toEqual([null]);
    expect(mapOf({})).toEqual([null]);
    expect(mapOf({ sources: ['a.ts'] })).toEqual([null]);
    expect(mapOf({ mappings: 'AAAA' })).toEqual([null]);
    expect(mapOf({ sections: [{ offset: { line: 0, column: 0 }, map: { sources: ['a.ts'], mappings: 'AAAA' } }] })).toEqual([null]);
    expect(mapOf({ sources: ['a.ts'], mappings: 'AAAA,CAAC,A' })).toEqual([null]);
    expect(mapOf({ sources: ['a.ts'], mappings: 'IAAA' })).toEqual([null]);
    expect(mapOf({ sources: ['a.ts'], mappings: 'ACAA' })).toEqual([null]);
    for (const source of ['webpack://app/a.ts', 'node:fs', 'http://[', null]) expect(mapOf({ sources: [source], mappings: 'AAAA' })).toEqual([null]);
    expect(new SourcePositions().sourcesOf([{ url: 'node:internal/timers', line: 1, column: 1 }])).toEqual([null]);
    expect(new SourcePositions(() => '{}').sourcesOf([{ url: 'file://host/a.js', line: 1, column: 1 }])).toEqual([null]);
  });

  it('reads a map again that could not be read', () => {
    let isReadable = false;
    const positions = new SourcePositions(() => {
      if (!isReadable) throw new Error('EMFILE');
      return JSON.stringify({ sources: ['a.ts'], mappings: 'AAAA' });
    });
    expect(positions.sourcesOf([{ url, line: 1, column: 1 }])).toEqual([null]);
    isReadable = true;

    expect(positions.sourcesOf([{ url, line: 1, column: 1 }])).toEqual(['/app/dist/programs/a.ts:1:1']);
  });
});
