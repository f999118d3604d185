import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { failPoints } from '../shared/fail-points.ts';
import { reasons, scanAwaits } from './helpers/scan-awaits.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Folders: every file of them is scanned, also one that is added later. */
const WATCHED_FOLDERS = ['services/effect-worker/deliveries', 'services/effect-worker/tools', 'services/work'];
/** Files with awaits. */
const WATCHED_FILES = [
  'actors/runtime/apply/commit-loop.ts',
  'actors/runtime/apply/commit-sender.ts',
  'actors/runtime/host.ts',
  'actors/runtime/publish/dispatched-effects.ts',
  'actors/runtime/publish/outbox.ts',
  'actors/runtime/partitions/initialise-partitions.ts',
  'actors/runtime/partitions/unstarted-runs.ts',
  'actors/runtime/partitions/timers.ts',
  'services/agent-gateway/accept-runs.ts',
  'services/agent-gateway/webhooks/fan-out.ts',
  'services/router-gateway/call-sender.ts',
  'services/router-gateway/key-admission.ts',
  'services/router-gateway/routes/model-call.ts',
  'services/router-worker/call-items.ts',
  'services/router-worker/interim/interim-records.ts',
  'services/router-worker/ledger/ledger.ts',
  'services/router-worker/ledger/write-usage.ts',
  'services/router-worker/pipeline/file-parser.ts',
  'services/router-worker/published-frames.ts',
  'services/router-worker/usage-recorder.ts',
  'shared/config/platform-source.ts',
];
const watched = [...WATCHED_FILES, ...WATCHED_FOLDERS.flatMap(sourcesIn)];

describe('every await in the files in which nothing may be lost or done twice', () => {
  it.each(watched)('of %s has a fail point beside it, or a written reason', (file) => {
    expect(scan(file).faults).toEqual([]);
  });

  it('are found by the scan', () => {
    expect(WATCHED_FILES.filter((file) => scan(file).awaits === 0)).toEqual([]);
    expect(watched.reduce((sum, file) => sum + scan(file).awaits, 0)).toBeGreaterThan(130);
  });
});

describe('the fail points', () => {
  const scans = ['actors', 'bus', 'services', 'shared'].flatMap(sourcesIn).map((file) => ({ file, ...scan(file) }));

  it('stand in the sources once each, and in no other file', () => {
    expect(scans.flatMap(({ points }) => points).sort()).toEqual(Object.keys(failPoints).sort());
    expect(scans.filter(({ file, points }) => points.length > 0 && !watched.includes(file))).toEqual([]);
  });

  it('are left out for the reasons of the table, and in no other file', () => {
    expect([...new Set(scans.flatMap(({ named }) => named))].sort()).toEqual(Object.keys(reasons).sort());
    expect(scans.filter(({ file, named }) => named.length > 0 && !watched.includes(file))).toEqual([]);
  });
});

describe('the scan', () => {
  const scanned = (...lines: string[]) => scanAwaits(lines.join('\n'));

  it('finds every kind of await, in order, and skips comments', () => {
    const { awaits, points, faults } = scanned(
      '// await nothing',
      'for await (const one of all) await use(one);',
      '/* work.then(',
      `  await */ work.then(next); failPoint('a.b');`,
      `const url = 'http://x'; await fetch(url); // await`,
      'awaited(unawaited);',
      'work.dispatch(kind);',
    );

    expect(awaits).toBe(5);
    expect(points).toEqual(['a.b']);
    expect(faults).toEqual([
      '2: no fail point and no reason: for await (const one of all)',
      '2: no fail point and no reason: await use(one);',
      '5: no fail point and no reason: await fetch(url);',
      '7: no fail point and no reason: .dispatch(kind);',
    ]);
  });

  it('takes the fail point behind an await, or before it when none stands before that, and a comment beside it or above it', () => {
    const { faults, named } = scanned(
      'async function f() {',
      `  failPoint('a.a');`,
      '  try {',
      '    await a();',
      '    const rows = await b(`',
      'select 1`);',
      `    if (rows.length > 0) failPoint('b.b');`,
      '    await c(); // no fail point: reads',
      '    // no fail point, because nothing follows it',
      '    // What it is for.',
      '    for await (const one of d()) {',
      '      // no fail point: inside (2)',
      '      await Promise.all([',
      '        async () => await e(one),',
      '      ]);',
      '    }',
      '  } catch {}',
      '}',
    );

    expect(faults).toEqual([]);
    expect(named).toEqual(['reads', 'inside']);
  });

  it.each([
    ['an await right behind the one that a fail point covers', ['await a();', `failPoint('a.a');`, 'await b();'], '3: no fail point and no reason: await b();'],
    ['an await before that one', ['await a();', 'await b();', `failPoint('b.b');`], '1: no fail point and no reason: await a();'],
    ['an await behind a count of them', ['await a(); // no fail point: reads (2)', 'await b();', 'await c();'], '3: no fail point and no reason: await c();'],
    ['a second await on the line of a comment', ['await a(await b()); // no fail point: reads'], '1: no fail point and no reason: await b());'],
    [
      'an await with a fail point and a reason',
      ['await a(); // no fail point: reads', `failPoint('a.a');`],
      '1: more than one fail point or reason: await a();',
    ],
    ['an await with two reasons', ['// no fail point: reads', 'await a(); // no fail point: waits'], '2: more than one fail point or reason: await a();'],
    ['a fail point without an await', [`failPoint('a.a');`], '1: beside no await: a.a'],
    ['a second fail point behind an await', ['await a();', `failPoint('a.a');`, `failPoint('a.b');`], '3: beside no await: a.b'],
    [
      'a fail point of another function',
      ['() => {', '  await a(); // no fail point: reads', '};', '() => {', `  failPoint('a.a');`, '};'],
      '5: beside no await: a.a',
    ],
    ['a comment without an await', ['a(); // no fail point: reads'], '1: covers too few awaits: // no fail point: reads'],
    ['a comment at the end', ['a();', '// no fail point: reads'], '2: covers too few awaits: // no fail point: reads'],
    [
      'a count that reaches over a fail point',
      ['await a(); // no fail point: reads (2)', `failPoint('b.b');`, 'b();'],
      '1: covers too few awaits: // no fail point: reads (2)',
    ],
  ])('refuses %s', (_, lines, fault) => {
    expect(scanned(...lines).faults).toContain(fault);
  });

  it('refuses a count that reaches into another function', () => {
    const { faults } = scanned('() => {', '  await a(); // no fail point: reads (2)', '};', '() => {', '  await b();', '};');

    expect(faults).toEqual(['5: no fail point and no reason: await b();', '2: covers too few awaits: // no fail point: reads (2)']);
  });

  it.each([
    '// no fail point: dreams',
    '// no fail point: reads it',
    '// no fail point: reads (0)',
    '// no fail point',
    '// No fail point: reads',
    '// no fail point, because',
    '// no fail point: toString',
  ])('refuses %s', (comment) => {
    expect(scanned(`await a(); ${comment}`).faults).toEqual([`1: no reason of the table: ${comment}`]);
  });
});

function scan(file: string) {
  return scanAwaits(readFileSync(join(root, file), 'utf8'));
}

function sourcesIn(folder: string): string[] {
  const found = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path.replaceAll('\\', '/')}`);
  return found.filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
}
