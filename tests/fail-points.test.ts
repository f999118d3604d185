import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { failPoints } from '../shared/fail-points.ts';
import { type AwaitRow, awaitsKept } from './helpers/fail-point-places.ts';
import { type Place, scanAwaits } from './helpers/scan-awaits.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Of an await's text, what the table has of it. */
const SHOWN_CHARACTERS = 72;
/** Whose files are all looked at, those that are added later too. */
const WHOLE_FOLDERS = ['services/effect-worker/tools', 'services/effect-worker/deliveries'];

const files = Object.keys(awaitsKept);

describe('every await in the files in which nothing may be lost or done twice', () => {
  it.each(files)('of %s has a fail point beside it, or a written reason', (file) => {
    const places = scan(file);
    const awaits = places.flatMap((place) => (place.kind === 'await' ? [shown(place)] : []));
    const rows = awaitsKept[file] ?? [];

    expect(awaits).toEqual(rows.map(([text]) => text));
    expect(misplaced(places, rows)).toEqual([]);
    for (const [text, kept] of rows) expect(typeof kept === 'string' ? kept : Object.keys(kept), text).not.toHaveLength(0);
  });

  it('is looked for in every file that belongs to a tool call or a delivery', () => {
    const found = WHOLE_FOLDERS.flatMap(sourcesIn).filter((file) => scan(file).some(({ kind }) => kind === 'await'));

    expect(found.filter((file) => !files.includes(file))).toEqual([]);
    expect(found.length).toBeGreaterThan(10);
    expect(files.flatMap((file) => awaitsKept[file] ?? []).length).toBeGreaterThan(130);
  });
});

describe('the fail points', () => {
  const inTable = files.flatMap((file) => (awaitsKept[file] ?? []).flatMap(([, kept]) => (typeof kept === 'string' ? [] : Object.values(kept))));

  it('stand in the sources once each, and in no other file', () => {
    const inSources = ['actors', 'bus', 'services', 'shared'].flatMap(sourcesIn).flatMap((file) => pointsIn(file).map((name) => ({ name, file })));

    expect(inSources.map(({ name }) => name).sort()).toEqual(Object.keys(failPoints).sort());
    expect(inSources.filter(({ file }) => !files.includes(file))).toEqual([]);
  });

  it('are each beside an await of the table', () => {
    expect([...new Set(inTable)].sort()).toEqual(Object.keys(failPoints).sort());
  });
});

describe('the scan', () => {
  it('finds every way to wait, in order, and passes over comments', () => {
    const source = [
      '// await nothing',
      'for await (const one of all) await use(one);',
      `/* work.then(`,
      `  await */ work.then(next); failPoint('a.b');`,
      `const url = 'http://x'; await fetch(url); // await`,
      'awaited(unawaited);',
    ].join('\n');

    expect(scanAwaits(source)).toEqual([
      { kind: 'await', text: 'for await (const one of all)', line: 2 },
      { kind: 'await', text: 'await use(one);', line: 2 },
      { kind: 'await', text: '.then(next);', line: 4 },
      { kind: 'point', name: 'a.b', line: 4 },
      { kind: 'await', text: 'await fetch(url);', line: 5 },
    ]);
  });
});

/** The rows whose point is not right before, or right behind, their await. */
function misplaced(places: readonly Place[], rows: readonly AwaitRow[]): string[] {
  const at = places.flatMap(({ kind }, place) => (kind === 'await' ? [place] : []));
  return rows.flatMap(([text, kept], row) => {
    if (typeof kept === 'string') return [];
    const here = at[row] ?? 0;
    const sides = [
      { name: kept.before, beside: places[here - 1], word: 'before' },
      { name: kept.after, beside: places[here + 1], word: 'after' },
    ];
    const wrong = sides.filter(({ name, beside }) => name !== undefined && !(beside?.kind === 'point' && beside.name === name));
    return wrong.map(({ name, word }) => `${name} is not ${word} ${text}`);
  });
}

function scan(file: string): Place[] {
  return scanAwaits(readFileSync(join(root, file), 'utf8'));
}

function shown({ text }: { text: string }): string {
  return text.slice(0, SHOWN_CHARACTERS).trimEnd();
}

function pointsIn(file: string): string[] {
  return scan(file).flatMap((place) => (place.kind === 'point' ? [place.name] : []));
}

function sourcesIn(folder: string): string[] {
  const found = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path.replaceAll('\\', '/')}`);
  return found.filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
}
