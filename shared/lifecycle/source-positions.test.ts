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

    for (let line = 1; line <= 41; line += 1) {
      for (let column = 1; column <= 120; column += 1) {
        const entry = node.findEntry(line - 1, column - 1);
        const isThere = 'originalSource' in entry && entry.generatedLine === line - 1;
        const expected = isThere ? `${new URL(entry.originalSource, url).pathname}:${entry.originalLine + 1}:${entry.originalColumn + 1}` : null;
        expect(positions.sourceOf({ url, line, column }), `${line}:${column}`).toBe(expected);
        seen[isThere ? 'found' : 'none'] += 1;
      }
    }
    expect(seen.found).toBeGreaterThan(1_000);
    expect(seen.none).toBeGreaterThan(100);
  });

  it('reads no map before its first position, and none again for the same one', () => {
    const read: string[] = [];
    const positions = new SourcePositions((path) => {
      read.push(path);
      return JSON.stringify({ sources: ['../../a.ts'], mappings: 'AAAA' });
    });
    expect(read).toEqual([]);

    expect(positions.sourceOf({ url, line: 1, column: 5 })).toBe('/app/a.ts:1:1');
    expect(positions.sourceOf({ url, line: 1, column: 5 })).toBe('/app/a.ts:1:1');

    expect(read).toEqual(['/app/dist/programs/part.js.map']);
  });

  it('finds none without a map, in one that is broken, where code has no source, and in modules of Node', () => {
    const absent = new SourcePositions(() => {
      throw new Error('ENOENT');
    });
    const mapped = (text: string) => new SourcePositions(() => text).sourceOf({ url, line: 1, column: 3 });

    expect(absent.sourceOf({ url, line: 1, column: 1 })).toBeNull();
    expect(mapped('{')).toBeNull();
    expect(mapped(JSON.stringify({ sources: ['a.ts'], mappings: 'AAAA,CAAC,A' }))).toBeNull();
    expect(mapped(JSON.stringify({ sources: ['a.ts'], mappings: 'IAAA' }))).toBeNull();
    expect(absent.sourceOf({ url: 'node:internal/timers', line: 1, column: 1 })).toBeNull();
  });
});
