import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { root } from '../helpers/deployment.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type AlertCase, alertCases } from '../helpers/monitoring/alert-cases.ts';
import { type DocumentedAlert, documentedAlerts } from '../helpers/monitoring/operations-tables.ts';

const run = promisify(execFile);
const rules = join(root, 'deploy/prometheus/alerts.yaml');
let promtool: string;

beforeAll(async () => {
  promtool = await testProgram('promtool');
});

describe('the alert rules, in Prometheus', () => {
  it('are valid, as its configuration is', async () => {
    const { stdout } = await run(promtool, ['check', 'rules', rules]);
    const checked = await run(promtool, ['check', 'config', join(root, 'deploy/prometheus/prometheus.yaml')]);

    expect(stdout).toContain(`${documentedAlerts().length} rules found`);
    expect(checked.stdout).toContain('SUCCESS');
  });

  it('have a case each', () => {
    expect(Object.keys(alertCases)).toEqual(documentedAlerts().map(({ name }) => name));
  });

  it.each(documentedAlerts())('$name fires for its cause, and for nothing that is healthy', async (alert) => {
    const one = alertCases[alert.name];
    const folder = await freeFolder('alerts');
    const file = join(folder, 'cases.yaml');
    await writeFile(
      file,
      stringify({ rule_files: [rules], evaluation_interval: one?.evaluatedEvery ?? '30s', tests: one === undefined ? [] : testsOf(alert, one) }),
    );

    await expect(run(promtool, ['test', 'rules', file])).resolves.toMatchObject({ stdout: expect.stringContaining('SUCCESS') });
  });
});

function testsOf({ name, severity, meaning }: DocumentedAlert, { at, fires, firesToo = fires, labels = {}, silent }: AlertCase) {
  const expected = [{ exp_labels: { severity, ...labels }, exp_annotations: { description: meaning } }];
  const of = (series: AlertCase['fires'], alerts: typeof expected) => ({
    interval: '30s',
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: alerts }],
  });
  return [of(fires, expected), of(firesToo, expected), of(silent, [])];
}
