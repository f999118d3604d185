import { type DocumentedMetric, documentedMetrics } from './operations-tables.ts';

const WIDTH = 12;
const HEIGHT = 8;
const QUANTILES = [0.5, 0.95, 0.99];
/** Every process reports the same value, or one that is not to be added up: the table says so. */
const SAME_IN_EACH = /take the maximum|Clock of this process|Unix time since/;

/** The dashboards by the name of their file: each process' metrics stand on the dashboard of its product. */
export function dashboards(): Record<string, string> {
  const metrics = documentedMetrics();
  const isOf = (...processes: string[]) => metrics.filter(({ from }) => processes.some((process) => from.startsWith(process)));
  const router = isOf('router-gateway', 'router-worker');
  const agent = isOf('agent-gateway', 'actor-host', 'effect-worker');
  const shared = metrics.filter((metric) => !router.includes(metric) && !agent.includes(metric));
  return {
    'router.json': dashboard('switchyard-router', 'Switchyard: model router', router),
    'agent-server.json': dashboard('switchyard-agent', 'Switchyard: agent server', agent),
    'processes.json': dashboard('switchyard-processes', 'Switchyard: gateways and processes', shared),
  };
}

function dashboard(uid: string, title: string, metrics: readonly DocumentedMetric[]): string {
  const body = {
    uid,
    title,
    tags: ['switchyard'],
    schemaVersion: 36,
    editable: true,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: [{ name: 'source', type: 'datasource', query: 'prometheus', label: 'Prometheus' }] },
    panels: metrics.map(panel),
  };
  return `${JSON.stringify(body, null, 2)}\n`;
}

function panel(metric: DocumentedMetric, index: number) {
  return {
    id: index + 1,
    type: 'timeseries',
    title: titleOf(metric),
    description: metric.meaning,
    datasource: { type: 'prometheus', uid: `\${source}` },
    gridPos: { x: (index % 2) * WIDTH, y: Math.floor(index / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
    fieldConfig: { defaults: { unit: unitOf(metric), min: metric.name.includes('skew') ? undefined : 0 }, overrides: [] },
    targets: targetsOf(metric),
  };
}

function targetsOf({ name, type, labels }: DocumentedMetric) {
  const by = labels.length === 0 ? '' : ` by (${labels.join(', ')})`;
  const legend = labels.map((label) => `{{${label}}}`).join(' ');
  if (type !== 'histogram')
    return [target('A', type === 'counter' ? `sum${by} (rate(${name}[$__rate_interval]))` : `${gathering(name)}${by} (${name})`, legend)];
  return QUANTILES.map((quantile, index) => {
    const buckets = `sum by (${['le', ...labels].join(', ')}) (rate(${name}_bucket[$__rate_interval]))`;
    return target(String.fromCharCode('A'.charCodeAt(0) + index), `histogram_quantile(${quantile}, ${buckets})`, `p${quantile * 100} ${legend}`.trim());
  });
}

function target(refId: string, expr: string, legendFormat: string) {
  return { refId, expr, legendFormat: legendFormat === '' ? '__auto' : legendFormat };
}

function gathering(name: string): string {
  const metric = documentedMetrics().find((one) => one.name === name);
  return metric !== undefined && SAME_IN_EACH.test(metric.meaning) ? 'max' : 'sum';
}

function titleOf({ name, type }: DocumentedMetric): string {
  const words = name
    .replace(/^switchyard_/, '')
    .replace(/_total$/, '')
    .replaceAll('_', ' ');
  return type === 'counter' ? `${words} per second` : words;
}

function unitOf({ name, type }: DocumentedMetric): string {
  if (type === 'counter') return name.includes('usd') ? 'currencyUSD' : 'cps';
  if (name.endsWith('since_seconds')) return 'dateTimeFromNow';
  return name.endsWith('_seconds') ? 's' : 'short';
}
