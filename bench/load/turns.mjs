import { agentClient, createSessions } from './agent-client.mjs';
import { closedLoop } from './closed-loop.mjs';

/** @typedef {{ server: import('./agent-client.mjs').AgentServer, sessions: number }} TurnLoad `sessions` are made beforehand and used in turn */

/** Turns per session: a prompt holds the whole conversation, so each turn of a session costs more than the last. */
const TURNS_PER_VISIT = 4;

/**
 * Turns of an agent, each slot in its own session: posts a message and long-polls until the log has the turn's `ready`.
 *
 * @param {TurnLoad & Omit<import('./closed-loop.mjs').LoopLoad, 'openSlot'>} load
 */
export async function turns({ server, sessions, ...loop }) {
  const free = await createSessions(server, Math.max(sessions, loop.inFlight));
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
        leave: client.leave,
      };
    },
  });
}
