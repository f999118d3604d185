import { readFileSync } from 'node:fs';

const operations = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');

/** A row of the table of metrics. */
export interface DocumentedMetric {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
  /** The processes that export it, as the table names them. */
  from: string;
  meaning: string;
}

/** A row of the table of alerts. */
export interface DocumentedAlert {
  name: string;
  /** PromQL. */
  condition: string;
  /** How long the condition holds first, as Prometheus writes it; null: not at all. */
  holds: string | null;
  severity: string;
  meaning: string;
}

/** The table of metrics of docs/operations.md. */
export function documentedMetrics(): DocumentedMetric[] {
  return rowsUnder('## Metrics').map(([name = '', type = '', labels = '', from = '', meaning = '']) => ({
    name: plain(name),
    type: type as DocumentedMetric['type'],
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label),
    from,
    meaning: plain(meaning),
  }));
}

/** The table of alerts of docs/operations.md. */
export function documentedAlerts(): DocumentedAlert[] {
  return rowsUnder('### Alerts').map(([name = '', condition = '', holds = '', severity = '', meaning = '']) => ({
    name: plain(name),
    condition: plain(condition),
    holds: holds === '' ? null : holds,
    severity,
    meaning: plain(meaning),
  }));
}

/** The alerts that docs/operations.md says are raised by their cause. */
export function alertsRaisedByTheirCause(): string[] {
  const [, named = ''] = /these are also raised by their cause.*?: (.*?)\. /.exec(operations) ?? [];
  return [...named.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
}

/** Cells of the first table below a heading, without its head. */
function rowsUnder(heading: string): string[][] {
  const [, section = ''] = operations.split(`\n${heading}\n`);
  const [table = ''] = /^\|.*(\n\|.*)*/m.exec(section) ?? [];
  return table
    .trim()
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll('\\|', '|')),
    );
}

/** Without marks of code and addresses of links. */
function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
}
