import { expect, it } from 'vitest';
import { tableOf } from './report.mjs';
import { rows } from './rows.mjs';

const { Failures } = await import('./load/failures.mjs');

/** One round of whole requests. */
function measured(target: string, figures: Record<string, number>) {
  return { round: 1, traffic: 'vendor' as const, target, load: 'whole64', figures, cpuByProcess: {}, count: 1, failures: new Failures() };
}

/** The cells of the row's lines. */
function cells(table: string, title: string): string[] {
  const line = table.split('\n').find((one) => one.includes(title)) ?? '';
  return line.split('|').map((cell) => cell.trim());
}

const rounds = [
  measured('switchyard', { perSecond: 4_200, cpuPerThousand: 0.2 }),
  measured('former-settings', { perSecond: 4_800, cpuPerThousand: 0.1 }),
  measured('portkey', { perSecond: 600, cpuPerThousand: 1 }),
];

it('sets what the former settings had beside what is measured', () => {
  const row = cells(tableOf(rounds, ['request-rate'], 'vendor'), 'requests per second');
  expect(row).toEqual(expect.arrayContaining(['4200 /s', '4800 /s', '600 /s', '7×', 'meets the aim']));
});

it('judges a row in the traffic of its bars only', () => {
  const table = tableOf(rounds, ['request-rate', 'request-cpu'], 'vendor');
  expect(cells(table, 'CPU per 1,000 non-stream')).not.toContain('meets the bar');
  expect(table).toContain('1 of 1 rows meet their bar');
});

it('leaves the column empty where the former settings were not measured', () => {
  const coLocated = { ...measured('co-located', { p50Ms: 1 }), load: 'whole1' };
  const row = cells(tableOf([...rounds, coLocated], ['co-located-latency'], 'plain'), 'gateway and worker in one process');
  expect(row.filter((cell) => cell === '1 ms')).toHaveLength(1);
});

it('measures one request at a time at targets that have had many', () => {
  const lone = rows.flatMap(({ name, needs }) => needs.filter(({ load }) => load === 'whole1').map(({ target }) => ({ name, target, needs })));
  expect(lone.map(({ target }) => target)).toEqual(expect.arrayContaining(['portkey', 'switchyard', 'co-located', 'billed']));
  for (const { name, target, needs } of lone) expect(needs, name).toContainEqual({ target, load: 'whole64' });
});
