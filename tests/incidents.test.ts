import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { settingsOf } from '../shared/config/setting-table.ts';
import { metricTable } from '../shared/telemetry/metrics.ts';
import { codesIn, documentedIncidents } from './helpers/incident-page.ts';
import { isLogged, programTexts } from './helpers/logged-texts.ts';
import { root } from './helpers/run-program.ts';

const incidents = documentedIncidents();
const programs = programTexts();
/** Of Prometheus and of each histogram. */
const FOREIGN_LABELS = ['instance', 'job', 'le'];

/** Name of a series of a query → labels of its metric; of a histogram `_bucket` too. */
const labelsOf = new Map<string, Record<string, readonly string[] | null>>(
  Object.values(metricTable).flatMap(({ name, type, labels }) =>
    (type === 'histogram' ? [`${name}_bucket`, `${name}_count`] : [name]).map((one) => [one, labels]),
  ),
);

interface Selected {
  metric: string;
  /** In `by (…)` and in the selector. */
  labels: string[];
  /** Values that a selector names, by label. */
  values: [label: string, value: string][];
}

/** What a query selects. Grouping applies to its first metric. */
function selectedBy(query: string): Selected[] {
  const grouped = [...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(',').map((label) => label.trim()));
  return [...query.matchAll(/(switchyard_\w+)(?:\{([^}]*)\})?/g)].map(([, metric = '', selector = ''], index) => {
    const matchers = [...selector.matchAll(/(\w+)=(~?)"([^"]*)"/g)];
    return {
      metric,
      labels: [...(index === 0 ? grouped : []), ...matchers.map(([, label = '']) => label)],
      values: matchers.flatMap(([, label = '', , given = '']) => given.split('|').map((value): [string, string] => [label, value])),
    };
  });
}

describe('docs/incidents.md', () => {
  it('has a query, a line of the log and a command for each trouble', () => {
    const parts = incidents.map(({ heading, queries, logged, commands }) => [
      heading,
      queries.length > 0,
      logged.length > 0 || heading === 'A clock is off',
      commands.length > 0,
    ]);

    expect(incidents.length).toBeGreaterThanOrEqual(7);
    expect(parts.filter(([, ...has]) => has.includes(false))).toEqual([]);
  });

  it('asks for metrics, labels and values that there are', () => {
    const selected = incidents.flatMap(({ queries, rest }) => [...queries, ...codesIn(rest)].flatMap(selectedBy));
    const unknown = selected.flatMap(({ metric, labels, values }) => {
      const known = labelsOf.get(metric);
      if (known === undefined) return [metric];
      const foreign = labels.filter((label) => !(label in known) && !FOREIGN_LABELS.includes(label)).map((label) => `${metric} by ${label}`);
      return [...foreign, ...values.filter(([label, value]) => known[label]?.includes(value) === false).map((pair) => `${metric} ${pair.join('=')}`)];
    });

    expect(selected.length).toBeGreaterThan(12);
    expect(unknown).toEqual([]);
  });

  it('quotes lines and fields of logs that the programs write', () => {
    const quoted = incidents.flatMap(({ logged }) => logged);
    const lines = quoted.filter((code) => code.includes(' '));
    const fields = quoted.filter((code) => /^[a-z_]+$/.test(code));

    expect(lines.length).toBeGreaterThan(10);
    expect(lines.filter((line) => !isLogged(line, programs))).toEqual([]);
    expect(fields.filter((name) => !new RegExp(`\\b${name}\\b`).test(programs))).toEqual([]);
  });

  it('names commands of the command line, with their arguments', () => {
    const text = incidents.map(({ rest, commands }) => [rest, ...commands].join('\n')).join('\n');
    const used = [...text.matchAll(/npm run -s operator -- ([a-z-]+(?: [a-z-]+)?)/g)].map(([, command = '']) => command);
    const reference = readFileSync(join(root, 'docs/cli.md'), 'utf8');

    expect(used.length).toBeGreaterThan(5);
    expect(used.filter((command) => !reference.includes(`\n## switchyard ${command}\n`))).toEqual([]);
  });

  it('asks for routes of the servers', () => {
    const paths = ['schemas/router/1/openapi.json', 'schemas/agent-server/0.9.0/openapi.json'].flatMap((file) =>
      Object.keys((JSON.parse(readFileSync(join(root, file), 'utf8')) as { paths: object }).paths),
    );
    // A model's id has a slash.
    const patterns = paths.map((path) => new RegExp(`^${path.replace('{path}', '.+').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`));
    const asked = incidents.flatMap(({ commands }) => commands.flatMap((line) => /http:\/\/127\.0\.0\.1:\d+(\/[^"?\s]*)/.exec(line)?.[1] ?? []));

    expect(asked.length).toBeGreaterThan(4);
    expect(asked.filter((path) => !patterns.some((pattern) => pattern.test(path)))).toEqual([]);
  });

  it('names settings that there are', () => {
    const settings = new Set([...Object.keys(settingsOf('standalone')), ...Object.keys(settingsOf('actor-host')), ...Object.keys(settingsOf('operator'))]);
    const named = codesIn(readFileSync(join(root, 'docs/incidents.md'), 'utf8')).filter((code) => /^[A-Z][A-Z_]+$/.test(code));

    expect(named.length).toBeGreaterThan(1);
    expect(named.filter((name) => !settings.has(name))).toEqual([]);
  });
});

it('docs/operations.md quotes lines of logs that the programs write', () => {
  const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
  const lines = codesIn(operations).filter((code) => /^[a-z][\w']* \w+ .*\w/.test(code) && !/[{}<>|="]|--|^docker |^npm |publish cmd/.test(code));

  expect(lines.length).toBeGreaterThan(15);
  expect(lines.filter((line) => !isLogged(line, programs))).toEqual([]);
});
