import { setTimeout as delay } from 'node:timers/promises';
import { hasEnded } from '../../scripts/servers/test-run.mjs';
import { Connection } from '../http/connection.mjs';

const TIMEOUT_MS = 30_000;
const LOOK_AGAIN_MS = 50;

/**
 * Waits until a program accepts connections.
 *
 * @param {{ port: number, child: import('node:child_process').ChildProcess, output: () => string }} program
 * @throws with its output when it ends before that
 */
export async function untilListening({ port, child, output }) {
  for (const untilMs = Date.now() + TIMEOUT_MS; Date.now() < untilMs; await delay(LOOK_AGAIN_MS)) {
    if (hasEnded(child)) break;
    const connection = await Connection.open({ host: '127.0.0.1', port }).catch(() => null);
    connection?.leave();
    if (connection !== null) return;
  }
  throw new Error(`the program did not open its port; it printed:\n${output()}`);
}
