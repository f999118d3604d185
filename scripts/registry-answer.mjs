import { runChild } from './run-child.mjs';

/** A registry that answers within this time is not what an install waits for. */
const SLOW_ANSWER_MS = 2_000;
/** An answer that takes longer is none: npm itself would try for more than a minute. */
const NO_ANSWER_MS = 10_000;

/**
 * What an install that takes long may be waiting for, asked of the registry itself, since a busy machine takes as long.
 *
 * @param {{ command: string, before: string[] }} npm
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, signal: AbortSignal }} options
 * @returns {Promise<string | null>} a remark about the registry; null when it answers well
 */
export async function remarkOnRegistry({ command, before }, { cwd, env, signal }) {
  const late = AbortSignal.timeout(NO_ANSWER_MS);
  const asking = runChild(command, [...before, 'ping', '--loglevel=notice', '--fetch-retries=0'], { cwd, env, signal: AbortSignal.any([signal, late]) });
  const { code, output } = await asking.catch(() => ({ code: null, output: '' }));
  const answerMs = Number(/PONG (\d+)/.exec(output)?.[1] ?? Number.NaN);
  if (code !== 0 || Number.isNaN(answerMs)) return 'the package registry is out of reach';
  return answerMs > SLOW_ANSWER_MS ? `the package registry is slow: it took ${(answerMs / 1_000).toFixed(1)} s to answer` : null;
}
