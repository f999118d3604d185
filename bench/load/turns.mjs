import { agentClient, createSessions } from './agent-client.mjs';
import { closedLoop } from './closed-loop.mjs';

/** @typedef {{ server: import('./agent-client.mjs').AgentServer, sessions: number, messages?: number }} TurnLoad `sessions` are made beforehand and used in turn; `messages` are in each of them from the beginning */

/** Turns per session: a prompt holds the whole conversation, so each turn of a session costs more than the last. */
const TURNS_PER_VISIT = 4;
const POSTED_AT_ONCE = 16;
const TEXT = 'How long is the warranty of my machine?';

/**
 * Turns of an agent, each slot in its own session: posts a message and long-polls until the log has the turn's `ready`.
 *
 * @param {TurnLoad & Omit<import('./closed-loop.mjs').LoopLoad, 'openSlot'>} load
 */
export async function turns({ server, sessions, messages = 0, ...loop }) {
  const free = await sessionsFor(server, Math.max(sessions, loop.inFlight), messages);
  return closedLoop({
    ...loop,
    openSlot: () => {
      const client = agentClient(server);
      let sessionId = '';
      let taken = TURNS_PER_VISIT;
      return {
        run: async () => {
          if (taken === TURNS_PER_VISIT) {
            if (sessionId !== '') free.push(sessionId);
            sessionId = free.shift() ?? '';
            taken = 0;
          }
          taken += 1;
          await client.takeTurn(sessionId);
        },
        leave: () => {
          if (sessionId !== '') free.push(sessionId);
          client.leave();
        },
      };
    },
  });
}

/** Sessions by the server's key, their number and messages: a load that stops and goes on has the same ones. @type {Map<string, Promise<string[]>>} */
const made = new Map();

/** @param {TurnLoad['server']} server @param {number} count @param {number} messages in each @returns {Promise<string[]>} ids */
function sessionsFor(server, count, messages) {
  const key = `${server.key} ${count} ${messages}`;
  const sessions = made.get(key) ?? newSessions(server, count, messages);
  made.set(key, sessions);
  return sessions;
}

/** @param {TurnLoad['server']} server @param {number} count @param {number} messages */
async function newSessions(server, count, messages) {
  const ids = await createSessions(server, count);
  await sayInEach(server, ids, messages);
  return ids;
}

/** Messages that begin no turn. @param {TurnLoad['server']} server @param {readonly string[]} sessions @param {number} messages in each */
async function sayInEach(server, sessions, messages) {
  const left = [...sessions];
  await Promise.all(
    Array.from({ length: POSTED_AT_ONCE }, async () => {
      const client = agentClient(server);
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        for (let posted = 0; posted < messages; posted += 1) await client.say(id, TEXT);
      }
      client.leave();
    }),
  );
}
