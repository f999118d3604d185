import { expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { openStream } from '../helpers/open-stream.ts';
import { readStream } from '../helpers/read-stream.ts';
import { startStandalone } from '../helpers/start-standalone.ts';

const CLEAN = { code: 0, signal: null };
/** Longer than the drain. */
const LONG = '!slow 500 !repeat 20 Hello!';
/** More than the drain, too, and taken up anew at the next start. */
const TURN = '!slow 500 !repeat 8 Hello!';
const DRAIN_SECONDS = 1;
/** Three times the promise: the drain and the time for closing everything (RELEASE_MARGIN_MS). */
const ENDS_WITHIN_MS = 3 * (DRAIN_SECONDS * 1_000 + 10_000);

it('npm start exits in time after a signal whatever is in flight, and the turn continues at the next start', async () => {
  const standalone = await startStandalone({ env: { SHUTDOWN_DRAIN_TIMEOUT_SECONDS: String(DRAIN_SECONDS), MANAGEMENT_PORT: '0', COALESCE_MS: '1' } });
  const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  const { id } = await agent.createSession();
  const { offset } = await agent.postMessage(id, TURN);
  const stream = await openStream(standalone, LONG);
  await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'typing');
  const beganAtMs = performance.now();
  const exit = await standalone.stop();

  expect(exit, standalone.output()).toEqual(CLEAN);
  expect(performance.now() - beganAtMs).toBeLessThan(ENDS_WITHIN_MS);
  expect(readStream(await stream.text)).toMatchObject({ ends: [503], behindEnd: 0 });
  const next = await startStandalone({ dataDir: standalone.dataDir });
  const log = await agentClient(next.agentUrl, next.keys.agentKey).logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
  expect(log.filter((event) => event.kind === 'assistant_message')).toHaveLength(1);
  expect(log[offset]).toMatchObject({ kind: 'user_message' });
  // Its call was dispatched, which ended with the process: it is made again at once.
  expect(next.output()).not.toContain('no heartbeat names a dispatched call');
  expect(await next.stop()).toEqual(CLEAN);
});
