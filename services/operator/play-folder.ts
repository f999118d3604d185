import { dirname, join, resolve } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { openModels } from './conversation/open-models.ts';
import { unaskedModel } from './conversation/unasked-model.ts';
import { loadAgent } from './load-agent.ts';
import { readScenarios } from './scenarios/read-scenarios.ts';
import { reportJson, reportLines } from './scenarios/report.ts';
import { runScenario, type ScenarioReport } from './scenarios/run-scenario.ts';

interface PlayOptions {
  folder: string;
  /** Null: `manifest.yaml` beside the folder. */
  manifest: string | null;
  /** Null: `documents` beside the manifest. */
  documents: string | null;
  json: boolean;
}

interface PlayDeps {
  environment: Environment;
  print(line: string): void;
  progress(text: string): void;
  clock: Clock;
  log: Log;
}

/**
 * Plays the scenarios of a folder, one after the other, and prints what differs from their expectations.
 * @throws `config.invalid` for files that can't be used; `scenario.failed` with the number of scenarios that have failed
 */
export async function playFolder({ folder, manifest: given, documents, json }: PlayOptions, deps: PlayDeps): Promise<void> {
  const { environment, print, progress, clock, log } = deps;
  const manifest = given ?? join(dirname(resolve(folder)), 'manifest.yaml');
  const { bundle, ofAgent } = await loadAgent({ manifest, documents }, environment);
  const scenarios = await readScenarios(folder, bundle.body);
  const { calls, answeredBy } = await openModels(bundle.body.manifest, manifest, { environment: ofAgent, log });
  const reports: ScenarioReport[] = [];
  try {
    for (const scenario of scenarios) {
      progress(`playing scenario ${reports.length + 1} of ${scenarios.length}`);
      reports.push(await runScenario(scenario, { bundle, models: calls, nowMs: clock.nowMs() }));
    }
  } finally {
    await calls.close();
  }
  const answering = { answeredBy, unaskedModel: unaskedModel(bundle.body.manifest) };
  if (json) print(JSON.stringify(reportJson(reports, answering), null, 2));
  else for (const line of reportLines(reports, answering)) print(line);
  const failed = reports.filter(({ hasPassed }) => !hasPassed).length;
  if (failed > 0) throw new SwitchyardError('scenario.failed', failed === 1 ? '1 scenario has failed' : `${failed} scenarios have failed`);
}
