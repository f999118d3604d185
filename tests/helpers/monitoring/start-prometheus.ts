import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { testProgram } from '../../../scripts/servers/test-programs.mjs';
import { freePort } from '../../../scripts/servers/test-tcp.mjs';
import { root } from '../deployment.ts';
import { eventually } from '../eventually.ts';
import { freeFolder } from '../free-folder.ts';
import { runProgram } from '../run-program.ts';

const rulesSchema = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(z.looseObject({ expr: z.string() })) })) });
const answerSchema = z.object({
  data: z.object({ result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) })) }),
});

export interface Prometheus {
  /** @returns the series of an expression now, by their labels and value */
  query(expression: string): Promise<{ metric: Record<string, string>; value: string }[]>;
  /** @returns the names of all alerts that have fired in the last seconds */
  fired(withinSeconds: number): Promise<Set<string>>;
  /** Scrapes one more target from now on. */
  scrape(target: string): Promise<void>;
  stop(): Promise<void>;
}

/** Of a busy machine. */
const QUERY_MS = 60_000;

/**
 * A Prometheus that scrapes management listeners, with the alert rules of `deploy/`, whose alerts do not wait. Rules that compare with what was five
 * minutes or a day before compare with what was half a minute before. The rule that asks for a number of hosts that did not change asks for two minutes.
 *
 * @param targets as host:port
 * @param scrapeSeconds between two scrapes, and the most that one may take
 */
export async function startPrometheus(targets: readonly string[], { scrapeSeconds }: { scrapeSeconds: number }): Promise<Prometheus> {
  const folder = await freeFolder('prometheus');
  const { groups } = rulesSchema.parse(parse(await readFile(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8')));
  const rules = groups.map(({ name, rules: all }) => ({ name, rules: all.map(({ for: _, expr, ...rule }) => ({ ...rule, expr: sooner(expr) })) }));
  await writeFile(join(folder, 'alerts.yaml'), stringify({ groups: rules }));
  await writeFile(
    join(folder, 'prometheus.yaml'),
    stringify({
      global: { scrape_interval: `${scrapeSeconds}s`, scrape_timeout: `${scrapeSeconds}s`, evaluation_interval: '1s' },
      rule_files: ['alerts.yaml'],
      scrape_configs: [{ job_name: 'switchyard', file_sd_configs: [{ files: ['targets.json'], refresh_interval: '1s' }] }],
    }),
  );
  const scraped = [...targets];
  const writeTargets = () => writeFile(join(folder, 'targets.json'), JSON.stringify([{ targets: scraped }]));
  await writeTargets();
  const url = `http://127.0.0.1:${await freePort()}`;
  const program = runProgram([
    await testProgram('prometheus'),
    `--config.file=${join(folder, 'prometheus.yaml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${new URL(url).host}`,
  ]);
  await eventually(async () => program.hasExited() || (await fetch(`${url}/-/ready`)).ok, { timeoutMs: 60_000 });
  if (program.hasExited()) throw new Error(`Prometheus has ended:\n${program.output()}`);
  const query: Prometheus['query'] = async (expression) => {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`, { signal: AbortSignal.timeout(QUERY_MS) });
    if (!answer.ok) throw new Error(`${expression}: ${await answer.text()}`);
    return answerSchema.parse(await answer.json()).data.result.map(({ metric, value: [, value] }) => ({ metric, value }));
  };
  return {
    query,
    fired: async (withinSeconds) => {
      const alerts = await query(`last_over_time(ALERTS{alertstate="firing"}[${Math.ceil(withinSeconds)}s])`);
      return new Set(alerts.map(({ metric }) => metric.alertname ?? ''));
    },
    scrape: (target) => {
      scraped.push(target);
      return writeTargets();
    },
    async stop() {
      program.signal('SIGTERM');
      await program.exited;
    },
  };
}

function sooner(expression: string): string {
  const compared = expression.replace(/offset (?:5m|1d)\b/g, 'offset 30s');
  return compared.includes('[10m:') ? compared.replaceAll('[10m', '[2m') : compared;
}
