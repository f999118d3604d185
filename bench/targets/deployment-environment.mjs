import { join } from 'node:path';
import { WEBHOOK, writeDeploymentFiles } from './deployment-files.mjs';

/** @typedef {{ upstreamUrl: string, shapes: import('../shape.mjs').Shape[], turnShape: import('../shape.mjs').Shape, profileFolder?: string, memoryFolder?: string, isBilled?: boolean, without?: readonly import('./deployment-files.mjs').BilledPart[], engine?: import('./engine-files.mjs').EngineOptions, collectorUrl?: string, allowHosts?: string, logLevel?: string }} DeploymentOptions `collectorUrl`: of traces; absent: none are recorded. `allowHosts`: on this machine, that callbacks and events may reach */

const PROFILER = new URL('../profile/profile-on-signal.mjs', import.meta.url).href;
const LOOP = new URL('../profile/loop-on-signal.mjs', import.meta.url).href;
const MEMORY = new URL('../profile/memory-on-signal.mjs', import.meta.url).href;

/**
 * The environment of Switchyard's processes, in a cluster or standalone: as in production.
 *
 * @param {string} folder for its files
 * @param {DeploymentOptions} deployment
 */
export async function deploymentEnvironment(folder, { profileFolder, memoryFolder, collectorUrl, allowHosts, logLevel = 'info', ...deployment }) {
  const keysModule = new URL('../../dist/services/standalone/keys.js', import.meta.url).href;
  /** @type {typeof import('../../services/standalone/keys.ts')} */
  const { newKeys, withKeys } = await import(keysModule);
  const keys = newKeys({});
  const loopFile = profileFolder === undefined && memoryFolder === undefined ? join(folder, 'loop') : undefined;
  const profiling = profileFolder === undefined ? {} : { NODE_OPTIONS: `--import=${PROFILER}`, BENCH_PROFILE_FOLDER: profileFolder };
  const environment = {
    ...withKeys({ PATH: process.env.PATH }, keys),
    ...writeDeploymentFiles(folder, deployment),
    ...profiling,
    ...(memoryFolder === undefined ? {} : { NODE_OPTIONS: `--import=${MEMORY}`, BENCH_MEMORY_FOLDER: memoryFolder }),
    ...(loopFile === undefined ? {} : { NODE_OPTIONS: `--import=${LOOP}`, BENCH_LOOP_FILE: loopFile }),
    ...(collectorUrl === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl }),
    ...(allowHosts === undefined ? {} : { OUTBOUND_ALLOW_HOSTS: allowHosts }),
    [WEBHOOK.variable]: WEBHOOK.secret,
    HOUSE_SECRET: keys.houseSecret,
    NODE_ENV: 'production',
    LOG_LEVEL: logLevel,
    SHUTDOWN_DRAIN_TIMEOUT_SECONDS: '5',
  };
  return { keys: { routerKey: keys.routerKey, agentKey: keys.agentKey }, environment, loopFile };
}
