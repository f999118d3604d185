import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** @typedef {import('./main.mjs').UpstreamCounts} UpstreamCounts */

/**
 * @typedef {object} Upstream
 * @property {string} url
 * @property {() => Promise<UpstreamCounts>} counts since they were last asked for
 * @property {() => void} stop
 */

const START_TIMEOUT_MS = 30_000;

/** Starts the fake model provider as a process beside this one, on the same core. @returns {Promise<Upstream>} */
export async function startUpstream() {
  const child = fork(fileURLToPath(new URL('main.mjs', import.meta.url)), { detached: true });
  const [{ port }] = await once(child, 'message', { signal: AbortSignal.timeout(START_TIMEOUT_MS) });
  return {
    url: `http://127.0.0.1:${port}`,
    counts: async () => {
      const answered = once(child, 'message', { signal: AbortSignal.timeout(START_TIMEOUT_MS) });
      child.send('counts');
      const [counts] = await answered;
      return counts;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}
