import { type ClientRequest, type IncomingMessage, request } from 'node:http';

/** Upper bound of the delay before it reconnects: readers that lost the same gateway must not all reconnect at once. */
const LONGEST_PAUSE_MS = 2_000;
/** Events that one reader stores; a test that posts more is wrong. */
const MAX_EVENTS = 1_000;

export interface EventReader {
  /** Of the events that it received, in the order received. */
  readonly offsets: readonly number[];
  readonly isOpen: boolean;
  /** Connections so far. */
  readonly connections: number;
  leave(): void;
}

/**
 * Follows a session as the EventSource of a browser does: whenever its connection ends, for whatever reason, it reconnects after a random
 * delay and sends the id of its last event.
 *
 * @param urlOf the gateway that it connects to next
 */
export function followEvents(urlOf: () => string, key: string): EventReader {
  const offsets: number[] = [];
  let connections = 0;
  let isOpen = false;
  let hasLeft = false;
  let sent: ClientRequest | null = null;
  let pause: NodeJS.Timeout | undefined;

  const again = () => {
    isOpen = false;
    clearTimeout(pause);
    if (!hasLeft) pause = setTimeout(connect, Math.random() * LONGEST_PAUSE_MS);
  };
  const listen = (response: IncomingMessage) => {
    if (response.statusCode !== 200) {
      response.resume();
      return;
    }
    isOpen = true;
    connections += 1;
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (piece: string) => {
      // An incomplete block at the end of the connection was never received.
      const blocks = (text + piece).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const id = /^id: (\d+)$/m.exec(block)?.[1];
        if (id !== undefined && offsets.length < MAX_EVENTS) offsets.push(Number(id));
      }
    });
    response.on('error', () => {});
  };
  const connect = () => {
    const last = offsets.at(-1);
    const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': String(last) }) };
    sent = request(urlOf(), { agent: false, headers }, listen);
    sent.on('error', () => {});
    sent.on('close', again);
    sent.end();
  };
  connect();
  return {
    offsets,
    get isOpen() {
      return isOpen;
    },
    get connections() {
      return connections;
    },
    leave: () => {
      hasLeft = true;
      clearTimeout(pause);
      sent?.destroy();
    },
  };
}
