import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessConfig } from '../config/process-config.ts';
import type { Environment } from '../config/secret-ref.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { checkFailPoint } from '../fail-points.ts';
import { createLog, type Log, type ProcessLog } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type MetricsRegistry, openMetrics } from '../telemetry/open-metrics.ts';
import { maskUrl } from '../telemetry/redact.ts';
import { boot, type Step, type Waiting } from './boot.ts';
import { exitOnFault } from './exit-on-fault.ts';
import { collectAfterStart, setUpHeap } from './heap.ts';
import { LoopWatchdog } from './loop-watchdog.ts';
import { openManagementListener } from './management-listener.ts';
import { type Check, Readiness } from './readiness.ts';
import { writeReadyFile } from './ready-file.ts';
import { Releasers } from './releasers.ts';
import { stopSignal } from './stop-signal.ts';

/** A failed start has to end within 10 s of the first refusal, so its releases get little time. */
const CLOSE_AFTER_FAILED_BOOT_MS = 400;
/** Beyond the drain: closing sockets, the last commits, the stores. */
const RELEASE_MARGIN_MS = 10_000;
const MAX_CAUSES = 4;

export interface Starting<Config> {
  config: Config;
  environment: Environment;
  log: Log;
  /** Applies `runtime.log_level`, unless LOG_LEVEL is set. */
  useManifestLevel(level: string): void;
  metrics: Metrics;
  /** For every wait for something outside this process. */
  step: Step;
  /** For everything opened, in order of opening. */
  releasers: Releasers;
}

interface Started {
  /** Null without a public port. */
  url: string | null;
  checks: readonly Check[];
}

interface ServiceProcess<Config extends ProcessConfig> {
  name: string;
  parseConfig(environment: Environment, args: readonly string[]): Config;
  start(starting: Starting<Config>): Promise<Started>;
}

/**
 * Runs a service process: configuration, management listener, start, readiness, stop signal, drain, exit code 0. A failed start prints one line to
 * stderr and exits with 1 within 10 s of the first refusal; a slow one logs every 5 s what it waits for.
 */
export async function runProcess<Config extends ProcessConfig>(service: ServiceProcess<Config>): Promise<never> {
  setUpHeap();
  try {
    checkFailPoint(process.env);
    const config = service.parseConfig(process.env, process.argv.slice(2));
    const metrics = openMetrics();
    const onDrop = () => metrics.add('telemetryDropped', { kind: 'log_lines' });
    const log = createLog({ level: config.logLevel, format: config.logFormat, service: service.name, onDrop });
    exitOnFault(log);
    const releasers = new Releasers(log);
    const readiness = new Readiness({ log });
    const { stopped } = await startUp(service, { config, log, metrics, releasers, readiness });
    const signal = await stopped;
    log.info({ signal }, 'stopping: finishing what is in flight');
    readiness.drain();
    await releasers.releaseAll({ timeoutMs: config.drainTimeoutMs + RELEASE_MARGIN_MS });
    log.info({}, 'stopped');
    process.exit(0);
  } catch (error) {
    console.error(`${service.name} can't start: ${explain(error)}`);
    process.exit(1);
  }
}

interface ProcessContext<Config> {
  config: Config;
  log: ProcessLog;
  metrics: MetricsRegistry;
  releasers: Releasers;
  readiness: Readiness;
}

/** @returns the stop signal's promise, in an object so that the start does not await it */
async function startUp<Config extends ProcessConfig>(
  service: ServiceProcess<Config>,
  context: ProcessContext<Config>,
): Promise<{ stopped: ReturnType<typeof stopSignal> }> {
  const { config, log, metrics, releasers, readiness } = context;
  try {
    return await boot(logWaiting(log), async (step) => {
      const management = await openManagementListener({ ...config.management, readiness, metrics });
      releasers.add('management listener', () => management.stop());
      const useManifestLevel = (level: string) => {
        if (config.logLevel === null) log.setLevel(level);
      };
      const { url, checks } = await service.start({ config, environment: process.env, log, useManifestLevel, metrics, step, releasers });
      // The service works from here on: a stop signal drains it, also during the collection.
      const stopped = stopSignal();
      await collectAfterStart();
      readiness.booted(checks);
      const watchdog = new LoopWatchdog({ log, metrics });
      releasers.add('loop watchdog', () => watchdog.stop());
      const facts = { pid: process.pid, service: service.name, ...(url === null ? {} : { url }), managementUrl: management.url };
      if (config.readyFile !== null) await writeReadyFile(config.readyFile, facts);
      log.info({ url, management_url: management.url, boot_ms: Math.round(performance.now()) }, 'ready');
      return { stopped };
    });
  } catch (error) {
    const closed = releasers.releaseAll({ timeoutMs: CLOSE_AFTER_FAILED_BOOT_MS });
    await Promise.race([closed, delay(CLOSE_AFTER_FAILED_BOOT_MS)]);
    throw error;
  }
}

function logWaiting(log: Log): (waiting: Waiting) => void {
  return ({ step, reason, waitedMs }) => {
    const seconds = Math.round(waitedMs / 1_000);
    log.info({ step, reason, waited_s: seconds }, `still starting: ${step}${reason === null ? '' : `; ${reason}`} (${seconds} s)`);
  };
}

/** One line: messages of a SwitchyardError and its causes; any other error is a bug and shows its stack. */
function explain(error: unknown): string {
  if (!(error instanceof SwitchyardError)) return maskUrl(error instanceof Error ? (error.stack ?? error.message) : String(error));
  const messages: string[] = [];
  for (let cause: unknown = error; cause instanceof Error && messages.length < MAX_CAUSES; cause = cause.cause) messages.push(wordsOf(cause));
  return maskUrl(messages.join(': '));
}

/** A connection error over several addresses is an AggregateError without a message. */
function wordsOf(error: Error): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map((one) => (one instanceof Error ? one.message : String(one))).join(', ');
  return error.message;
}
