import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { root } from '../helpers/deployment.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type AlertCase, alertCases } from '../helpers/monitoring/alert-cases.ts';
import { alertCauses } from '../helpers/monitoring/alert-causes.ts';
import { deepAlertCauses } from '../helpers/monitoring/deep-alert-causes.ts';
import { alertsRaisedByTheirCause, type DocumentedAlert, documentedAlerts } from '../helpers/monitoring/operations-tables.ts';

const run = promisify(execFile);
const rules = join(root, 'deploy/prometheus/alerts.yaml');
let promtool: string;
/** What it prints of an alert's cases. One run has all of them: a start takes most of its time. */
let printed: Map<string, string>;

beforeAll(async () => {
  promtool = await testProgram('promtool');
  printed = await runCases(documentedAlerts());
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

  it('are raised by their cause where docs/operations.md says so, and in no other place', () => {
    const raised = [...alertCauses, ...deepAlertCauses].flatMap(({ alerts }) => alerts);

    expect(alertsRaisedByTheirCause()).toEqual(documentedAlerts().flatMap(({ name }) => (raised.includes(name) ? [name] : [])));
    expect(new Set(raised).size).toBe(alertsRaisedByTheirCause().length);
  });

  it.each(documentedAlerts())('$name fires for its cause, and for nothing that is healthy', ({ name }) => {
    expect(printed.get(name)).toMatch(/^\s*SUCCESS\s*$/);
  });
});

/** What promtool prints of each file, which is named after its alert: SUCCESS, or what differs. */
async function runCases(alerts: readonly DocumentedAlert[]): Promise<Map<string, string>> {
  const folder = await freeFolder('alerts');
  const files = alerts.map(async (alert) => {
    const one = alertCases[alert.name];
    const file = join(folder, `${alert.name}.yaml`);
    const tests = one === undefined ? [] : testsOf(alert, one);
    await writeFile(file, stringify({ rule_files: [rules], evaluation_interval: one?.evaluatedEvery ?? '30s', tests }));
    return file;
  });
  // It ends with 1 when one of them fails. Both streams in one, since it prints what differs to the other one.
  const all = await run('sh', ['-c', '"$0" test rules "$@" 2>&1 || true', promtool, ...(await Promise.all(files))]);
  return new Map(
    all.stdout.split('Unit Testing:').map((section) => {
      const [path = '', ...lines] = section.trimStart().split('\n');
      return [basename(path.trim(), '.yaml'), lines.join('\n')];
    }),
  );
}

function testsOf({ name, severity, meaning }: DocumentedAlert, { at, fires, firesToo = fires, labels = {}, silent }: AlertCase) {
  const expected = [{ exp_labels: { severity, ...labels }, exp_annotations: { description: meaning } }];
  const of = (series: AlertCase['fires'], alerts: typeof expected) => ({
    interval: '30s',
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: alerts }],
  });
  return [of(fires, expected), of(firesToo, expected), of(silent, [])];
}
