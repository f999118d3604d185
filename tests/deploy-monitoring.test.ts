import { describe, expect, it } from 'vitest';
import { metricTable } from '../shared/telemetry/metrics.ts';
import { alertRules } from './helpers/monitoring/alert-rules.ts';
import { dashboards } from './helpers/monitoring/dashboards.ts';
import { documentedAlerts } from './helpers/monitoring/operations-tables.ts';

const exported = new Set<string>(Object.values(metricTable).flatMap(({ name, type }) => (type === 'histogram' ? [`${name}_bucket`] : [name])));
const metricsIn = (text: string) => new Set([...text.matchAll(/switchyard_[a-z_]+/g)].map(([name]) => name));

describe('the alert rules', () => {
  it('are those of docs/operations.md', async () => {
    await expect(alertRules()).toMatchFileSnapshot('../deploy/prometheus/alerts.yaml');
  });

  it('name only metrics that are exported', () => {
    const named = documentedAlerts().flatMap(({ condition }) => [...metricsIn(condition)]);

    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !exported.has(name))).toEqual([]);
  });
});

describe('the dashboards', () => {
  it.each(Object.entries(dashboards()))('has %s as the table of metrics gives it', async (name, content) => {
    await expect(content).toMatchFileSnapshot(`../deploy/grafana/${name}`);
  });

  it('show every metric, once', () => {
    const shown = Object.values(dashboards()).flatMap((content) => {
      const { panels } = JSON.parse(content) as { panels: { targets: { expr: string }[] }[] };
      return panels.flatMap(({ targets }) => [...new Set(targets.flatMap(({ expr }) => [...metricsIn(expr)]))]);
    });

    expect(shown.sort()).toEqual([...exported].sort());
  });
});
