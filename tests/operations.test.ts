import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { refusalReasons } from '../shared/errors/refusal-reason.ts';
import { metricTable } from '../shared/telemetry/metrics.ts';

const operations = readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8');

it('DESIGN 12: the table of metrics has the name, type and labels of each, and none that is not exported', () => {
  const rows = operations.split('\n').flatMap((line) => {
    const [, name, type, labels] = /^\| `(switchyard_\w+)` \| (\w+) \| ([^|]*)\|/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, type, labels: [...(labels ?? '').matchAll(/`(\w+)`/g)].map(([, label]) => label) }];
  });

  expect(rows).toEqual(Object.values(metricTable).map(({ name, type, labels }) => ({ name, type, labels: Object.keys(labels) })));
});

it('names no metric anywhere that is not exported', () => {
  const exported = new Set<string>(Object.values(metricTable).map(({ name }) => name));
  const named = [...operations.matchAll(/switchyard_[a-z_]+/g)].map(([name]) => name);

  expect(named.length).toBeGreaterThan(exported.size);
  expect(named.filter((name) => !exported.has(name))).toEqual([]);
});

it('explains each value of a label that is known beforehand', () => {
  const unexplained = Object.values(metricTable).flatMap(({ name, labels }) => {
    const row = operations.split('\n').find((line) => line.startsWith(`| \`${name}\``)) ?? '';
    return (
      Object.entries<readonly string[] | null>(labels)
        // The kinds of work are the bus' own, and the sources of dead letters the operator's.
        .filter(([label]) => label === 'outcome')
        .flatMap(([, values]) => (values ?? []).filter((value) => !row.includes(`\`${value}\``)))
    );
  });

  expect(unexplained).toEqual([]);
});

it('explains each reason of a refusal, in the order of the list', () => {
  const [, table = ''] = /### Reasons of refusals\n\n([\s\S]*?)\n\n/.exec(operations) ?? [];
  const explained = table
    .split('\n')
    .slice(2)
    .flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, reason]) => reason));

  expect(explained).toEqual([...refusalReasons]);
});
