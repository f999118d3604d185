import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../figures.mjs';
import { readUsage, total } from '../process-usage.mjs';
import { agentClient, createSessions } from './agent-client.mjs';
import { Failures } from './failures.mjs';

/**
 * @typedef {object} PollLoad
 * @property {import('./agent-client.mjs').AgentServer} server
 * @property {number} polls each of a session of its own
 * @property {number} measureMs
 * @property {readonly import('../process-usage.mjs').Root[]} gateway its process alone
 * @property {() => Promise<number>} queries that the gateway has sent to its database so far
 */

/** @typedef {{ polls: number, queries: number, memoryBytes: number, failures: Failures }} PollFigures */

/** The longest wait that the server allows; an empty response is followed by the next poll. */
const WAIT_SECONDS = 60;
/** Opened in waves, a thousand a second: the listen backlog is bounded, and the gateway shares its core. */
const WAVE = 100;
const WAVE_EVERY_MS = 100;
/** Opening one costs one query. When there was no query for this long, all of them are open and wait. */
const QUIET_MS = 3_000;
const QUIET_TIMEOUT_MS = 120_000;
const MEMORY_EVERY_MS = 2_000;

/**
 * Holds idle long-polls and counts the gateway's queries meanwhile.
 *
 * @param {PollLoad} load
 * @returns {Promise<PollFigures>}
 */
export async function idlePolls({ server, polls, measureMs, gateway, queries }) {
  const failures = new Failures();
  const sessions = await createSessions(server, polls);
  let isOver = false;
  /** @type {(() => void)[]} */
  const leaving = [];
  const open = async (/** @type {string} */ sessionId) => {
    const client = agentClient(server);
    leaving.push(client.leave);
    while (!isOver) {
      await client.pollIdle(sessionId, WAIT_SECONDS).catch((error) => {
        if (!isOver) failures.add(error);
        isOver ||= failures.count > polls; // each of them failed: not a measurement
      });
    }
  };
  const readers = [];
  for (let at = 0; at < sessions.length; at += WAVE) {
    readers.push(...sessions.slice(at, at + WAVE).map(open));
    await delay(WAVE_EVERY_MS);
  }
  const before = await whenQuiet(queries);
  /** @type {number[]} */
  const memories = [];
  for (let leftMs = measureMs; leftMs > 0; leftMs -= MEMORY_EVERY_MS) {
    await delay(Math.min(leftMs, MEMORY_EVERY_MS));
    memories.push(total(readUsage(gateway)).memoryBytes);
  }
  const asked = (await queries()) - before;
  isOver = true;
  for (const leave of leaving) leave();
  await Promise.all(readers);
  return { polls, queries: asked, memoryBytes: median(memories) ?? 0, failures };
}

/** @param {() => Promise<number>} queries @returns {Promise<number>} the count by then @throws when the queries don't end */
async function whenQuiet(queries) {
  let last = await queries();
  for (let waitedMs = 0; waitedMs < QUIET_TIMEOUT_MS; waitedMs += QUIET_MS) {
    await delay(QUIET_MS);
    const now = await queries();
    if (now === last) return now;
    last = now;
  }
  throw new Error(`the gateway went on asking its database: ${last} queries in all`);
}
