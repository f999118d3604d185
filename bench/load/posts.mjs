import { agentClient, createSessions } from './agent-client.mjs';
import { closedLoop } from './closed-loop.mjs';

/** @typedef {{ server: import('./agent-client.mjs').AgentServer, what: 'say' | 'injectResult' }} PostLoad */

/**
 * Posts to sessions, one for each slot, that begin no turn: messages, or results of tools.
 *
 * @param {PostLoad & Omit<import('./closed-loop.mjs').LoopLoad, 'openSlot'>} load
 */
export async function posts({ server, what, ...loop }) {
  const ids = await createSessions(server, loop.inFlight);
  return closedLoop({
    ...loop,
    openSlot: () => {
      const client = agentClient(server);
      const id = ids.pop() ?? '';
      return { run: () => client[what](id, TEXT), leave: client.leave };
    },
  });
}

const TEXT = 'How long is the warranty of my machine?';
