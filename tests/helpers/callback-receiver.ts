import { openHttpDouble, type ReceivedRequest } from '../../services/effect-worker/test-support/http-double.ts';

/** A status, or a closed connection in place of a response. */
type Answer = number | 'drop';

interface CallbackAddress {
  url: string;
  /** The posts, in order. */
  received: ReceivedRequest[];
  /** Its next responses; the last is repeated. */
  answer(...next: [Answer, ...Answer[]]): void;
}

export interface CallbackReceiver {
  /** As OUTBOUND_ALLOW_HOSTS names it. */
  host: string;
  /** How many it has received in all. */
  readonly posts: number;
  /** A separate address for one case, which accepts every post unless set otherwise. */
  address(...answers: Answer[]): CallbackAddress;
  close(): Promise<void>;
}

/** A real HTTP server on this machine that receives callbacks. */
export async function openCallbackReceiver(): Promise<CallbackReceiver> {
  const addresses = new Map<string, { received: ReceivedRequest[]; answers: Answer[] }>();
  const double = await openHttpDouble((received, response) => {
    const at = addresses.get(received.url);
    if (at === undefined) return void response.writeHead(404).end();
    at.received.push(received);
    const answer = (at.answers.length > 1 ? at.answers.shift() : at.answers[0]) ?? 204;
    if (answer === 'drop') response.socket?.destroy();
    else response.writeHead(answer).end();
  });
  const host = `127.0.0.1:${double.port}`;
  return {
    host,
    get posts() {
      return double.received.length;
    },
    address: (...answers) => {
      const path = `/callbacks/${addresses.size + 1}`;
      const at = { received: [] as ReceivedRequest[], answers };
      addresses.set(path, at);
      return { url: `http://${host}${path}`, received: at.received, answer: (...next) => void at.answers.splice(0, Infinity, ...next) };
    },
    close: double.close,
  };
}
