import { runChild } from './run-child.mjs';

/** A faster registry is not what delays the install. */
const SLOW_RESPONSE_MS = 2_000;
/** Counts as unreachable; npm itself would retry for more than a minute. */
const TIMEOUT_MS = 30_000;

/**
 * Asks the package registry whether it delays an install, since a busy machine may be the cause as well.
 *
 * @param {{ command: string, before: string[] }} npm
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, signal: AbortSignal }} options
 * @returns {Promise<string | null>} why the registry delays the install; null when it responds fast
 */
export async function describeRegistryDelay({ command, before }, { cwd, env, signal }) {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const ping = runChild(command, [...before, 'ping', '--loglevel=notice', '--fetch-retries=0'], { cwd, env, signal: AbortSignal.any([signal, timeout]) });
  const { code, output } = await ping.catch(() => ({ code: null, output: '' }));
  const responseMs = Number(/PONG (\d+)/.exec(output)?.[1] ?? Number.NaN);
  if (code !== 0 || Number.isNaN(responseMs)) return 'the package registry is unreachable';
  return responseMs > SLOW_RESPONSE_MS ? `the package registry is slow: it took ${(responseMs / 1_000).toFixed(1)} s to respond` : null;
}
