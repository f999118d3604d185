import { ask, lastingConnection, requestBytes } from '../http/request.mjs';
import { monotonicMs } from '../monotonic.mjs';

/** @typedef {import('../http/connection.mjs').Address} Address */
/** @typedef {{ address: Address, key: string }} AgentServer */

/** Sessions that are created concurrently. */
const MADE_AT_ONCE = 16;
const NOTHING_NEW = 504;
/** A turn that has not ended by then never does: a process of the target has died. */
const TURN_TIMEOUT_MS = 60_000;

/**
 * A customer of an agent server over one connection.
 *
 * @param {AgentServer} server
 */
export function agentClient({ address, key }) {
  const lasting = lastingConnection(address);
  const headers = { authorization: `Bearer ${key}` };
  /** @param {{ method?: string, path: string, body?: string }} request @param {number[]} expected statuses */
  const request = async (request, expected) => {
    const { status, text } = await ask(await lasting.get(), requestBytes({ address, headers, ...request }));
    if (!expected.includes(status)) throw new Error(`${request.path} answered ${status}: ${text}`);
    return { status, text };
  };
  return {
    leave: lasting.leave,
    /** @param {object} fields @returns {Promise<string>} its id */
    createSession: async (fields = {}) => JSON.parse((await request({ path: '/sessions', body: JSON.stringify(fields) }, [201])).text).id,
    /** Posts a message that begins no turn. @param {string} sessionId @param {string} text */
    say: async (sessionId, text) => {
      const body = JSON.stringify({ kind: 'user_message', text, trigger_processing: false });
      await request({ path: `/sessions/${sessionId}/events`, body }, [201]);
    },
    /** Posts the result of a tool, which begins no turn. @param {string} sessionId @param {string} text in the result */
    injectResult: async (sessionId, text) => {
      const body = JSON.stringify({ tool_id: 'shop:find_order', arguments: { order: 7 }, result: { text } });
      await request({ path: `/sessions/${sessionId}/tool_events`, body }, [200]);
    },
    /**
     * Posts a message and waits for the end of its turn.
     *
     * @param {string} sessionId
     * @throws when it ends without a reply, or does not end
     */
    takeTurn: async (sessionId) => {
      const path = `/sessions/${sessionId}/events`;
      const body = JSON.stringify({ kind: 'user_message', text: 'How long is the warranty of my machine?' });
      const { offset } = JSON.parse((await request({ path, body }, [201])).text);
      let hasReply = false;
      const untilMs = monotonicMs() + TURN_TIMEOUT_MS;
      for (let next = offset + 1; ; ) {
        if (monotonicMs() > untilMs) throw new Error('a turn did not end');
        const { text } = await request({ method: 'GET', path: `${path}?min_offset=${next}` }, [200]);
        for (const event of JSON.parse(text)) {
          hasReply ||= event.kind === 'assistant_message';
          next = event.offset + 1;
          if (event.status !== 'ready') continue;
          if (!hasReply) throw new Error(`a turn ended without a reply: ${text}`);
          return;
        }
      }
    },
    /** Posts a message and waits for the preamble of its turn. @param {string} sessionId @throws when the turn ends without one */
    awaitPreamble: async (sessionId) => {
      const path = `/sessions/${sessionId}/events`;
      const body = JSON.stringify({ kind: 'user_message', text: 'How long is the warranty of my machine?' });
      const { offset } = JSON.parse((await request({ path, body }, [201])).text);
      for (let next = offset + 1; ; ) {
        const { text } = await request({ method: 'GET', path: `${path}?min_offset=${next}` }, [200]);
        for (const event of JSON.parse(text)) {
          next = event.offset + 1;
          if (event.kind === 'preamble') return;
          if (event.status === 'ready') throw new Error(`a turn ended without a preamble: ${text}`);
        }
      }
    },
    /** Long-polls a session without new events. @param {string} sessionId @param {number} seconds at most */
    pollIdle: async (sessionId, seconds) => {
      const path = `/sessions/${sessionId}/events?min_offset=0&wait_for_data=${seconds}`;
      await request({ method: 'GET', path }, [NOTHING_NEW]);
    },
  };
}

/** @param {AgentServer} server @param {number} count @returns {Promise<string[]>} their ids */
export async function createSessions(server, count) {
  /** @type {string[]} */
  const ids = [];
  let wanted = count;
  await Promise.all(
    Array.from({ length: MADE_AT_ONCE }, async () => {
      const client = agentClient(server);
      for (; wanted > 0; ) {
        wanted -= 1;
        ids.push(await client.createSession());
      }
      client.leave();
    }),
  );
  return ids;
}
