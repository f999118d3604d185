import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../figures.mjs';
import { monotonicMs } from '../monotonic.mjs';
import { readUsage, total } from '../process-usage.mjs';
import { agentClient } from './agent-client.mjs';
import { perThousand } from './closed-loop.mjs';
import { Failures } from './failures.mjs';
import { usageWindow } from './usage-window.mjs';

/**
 * @typedef {object} EventLoad
 * @property {import('./agent-client.mjs').AgentServer} server which may post to `EVENT_RECEIVER`
 * @property {number} sessions each with an event webhook
 * @property {number} perSecond messages in all, without turns
 * @property {import('../settings.mjs').Times} times
 * @property {readonly import('../process-usage.mjs').Root[]} roots
 * @property {readonly import('../process-usage.mjs').Root[]} worker its process alone
 */

const PORT = 18_990;
/** As OUTBOUND_ALLOW_HOSTS names it. */
export const EVENT_RECEIVER = `127.0.0.1:${PORT}`;
/** After the last message, for the last events. */
const REST_MS = 5_000;

/**
 * Posts messages at a rate and receives their events. The lag of an event is the time from its creation to its receipt.
 *
 * @param {EventLoad} load
 * @returns {Promise<{ count: number, perSecond: number, cpuPerThousand: number, cpuByProcess: Record<string, number>, lagP50Ms: number | null, lagP99Ms: number | null, unordered: number, grownBytes: number, failures: Failures }>}
 */
export async function eventWebhooks({ server, sessions, perSecond, times, roots, worker }) {
  const failures = new Failures();
  /** @type {{ atMs: number, lagMs: number }[]} */
  const events = [];
  /** @type {Map<string, number>} */
  const next = new Map();
  let unordered = 0;
  const receiver = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const { offset, created_at: createdAt } = JSON.parse(text);
    const session = String(request.headers['x-session-id']);
    if (offset !== (next.get(session) ?? 0)) unordered += 1;
    next.set(session, offset + 1);
    events.push({ atMs: monotonicMs(), lagMs: Date.now() - Date.parse(createdAt) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => void receiver.listen(PORT, '127.0.0.1', () => resolve(null)));
  let isOver = false;
  const talk = async () => {
    const client = agentClient(server);
    try {
      const id = await client.createSession({ event_webhook_url: `http://${EVENT_RECEIVER}/events` });
      const everyMs = (sessions / perSecond) * 1_000;
      await delay(Math.random() * everyMs);
      for (let dueMs = monotonicMs(); !isOver; dueMs += everyMs) {
        await delay(Math.max(0, dueMs - monotonicMs()));
        await client.say(id, 'How long is the warranty of my machine?');
      }
    } catch (error) {
      failures.add(error);
    }
    client.leave();
  };
  try {
    const talking = Array.from({ length: sessions }, talk);
    let before = 0;
    let after = 0;
    const hooks = {
      onBegin: async () => {
        before = total(readUsage(worker)).memoryBytes;
      },
      onEnd: async () => {
        after = total(readUsage(worker)).memoryBytes;
      },
    };
    const window = await usageWindow(roots, times, hooks).finally(() => {
      isOver = true;
    });
    await Promise.all(talking);
    await delay(REST_MS);
    const within = events.filter(({ atMs }) => atMs >= window.fromMs && atMs < window.toMs);
    const lags = within.map(({ lagMs }) => lagMs);
    return {
      count: within.length,
      perSecond: within.length / window.seconds,
      cpuPerThousand: (window.cpuSeconds / within.length) * 1_000,
      cpuByProcess: perThousand(window.cpuByProcess, within.length),
      lagP50Ms: quantile(lags, 0.5),
      lagP99Ms: quantile(lags, 0.99),
      unordered,
      grownBytes: after - before,
      failures,
    };
  } finally {
    receiver.close();
    receiver.closeAllConnections();
  }
}
