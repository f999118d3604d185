import { ask, lastingConnection, requestBytes } from '../http/request.mjs';
import { agentClient } from './agent-client.mjs';
import { closedLoop } from './closed-loop.mjs';

/** @typedef {{ server: import('./agent-client.mjs').AgentServer, events: number }} PageLoad */

/** A page has at most this many. */
const MOST_EVENTS = 1_000;
const POSTED_AT_ONCE = 16;
const TEXT = 'How long is the warranty of my machine?';

/**
 * Reads one page of a session's log again and again, without waiting for news.
 *
 * @param {PageLoad & Omit<import('./closed-loop.mjs').LoopLoad, 'openSlot'>} load
 */
export async function logPages({ server, events, ...loop }) {
  if (events > MOST_EVENTS) throw new Error(`a page has at most ${MOST_EVENTS} events`);
  const sessionId = await sessionWith(events, server);
  const { address, key } = server;
  const path = `/sessions/${sessionId}/events?min_offset=0&limit=${events}&wait_for_data=0`;
  const request = requestBytes({ address, method: 'GET', path, headers: { authorization: `Bearer ${key}` } });
  return closedLoop({
    ...loop,
    openSlot: () => {
      const lasting = lastingConnection(address);
      return {
        run: async () => {
          const { status, text } = await ask(await lasting.get(), request);
          if (status !== 200 || !text.includes(`"offset":${events - 1}`)) throw new Error(`answered ${status}: ${text.slice(-200)}`);
        },
        leave: lasting.leave,
      };
    },
  });
}

/** @param {number} events messages that begin no turn @param {PageLoad['server']} server @returns {Promise<string>} the session's id */
async function sessionWith(events, server) {
  const first = agentClient(server);
  const sessionId = await first.createSession();
  first.leave();
  let left = events;
  await Promise.all(
    Array.from({ length: POSTED_AT_ONCE }, async () => {
      const client = agentClient(server);
      while (left > 0) {
        left -= 1;
        await client.say(sessionId, TEXT);
      }
      client.leave();
    }),
  );
  return sessionId;
}
