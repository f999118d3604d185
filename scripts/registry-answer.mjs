import { runChild } from './run-child.mjs';

/** A faster registry is not what delays the install. */
const SLOW_ANSWER_MS = 2_000;
/** Counts as unreachable; npm itself would retry for more than a minute. */
const NO_ANSWER_MS = 10_000;

/**
 * Asks the package registry whether it delays an install, since a busy machine may be the cause as well.
 *
 * @param {{ command: string, before: string[] }} npm
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, signal: AbortSignal }} options
 * @returns {Promise<string | null>} a remark about the registry; null when it replies fast
 */
export async function remarkOnRegistry({ command, before }, { cwd, env, signal }) {
  const late = AbortSignal.timeout(NO_ANSWER_MS);
  const asking = runChild(command, [...before, 'ping', '--loglevel=notice', '--fetch-retries=0'], { cwd, env, signal: AbortSignal.any([signal, late]) });
  const { code, output } = await asking.catch(() => ({ code: null, output: '' }));
  const answerMs = Number(/PONG (\d+)/.exec(output)?.[1] ?? Number.NaN);
  if (code !== 0 || Number.isNaN(answerMs)) return 'the package registry is out of reach';
  return answerMs > SLOW_ANSWER_MS ? `the package registry is slow: it took ${(answerMs / 1_000).toFixed(1)} s to answer` : null;
}
