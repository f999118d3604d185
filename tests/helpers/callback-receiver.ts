import { type Heard, openHttpDouble } from '../../services/effect-worker/test-support/http-double.ts';

/** A status, or the end of the connection in place of an answer. */
type Answer = number | 'drop';

interface CallbackAddress {
  url: string;
  /** What was posted there, in order. */
  heard: Heard[];
  /** How it answers from now on, the last for ever. */
  answer(...next: [Answer, ...Answer[]]): void;
}

export interface CallbackReceiver {
  /** As OUTBOUND_ALLOW_HOSTS names it. */
  host: string;
  /** An address of its own for one case, which takes everything until it is told otherwise. */
  address(...answers: Answer[]): CallbackAddress;
  close(): Promise<void>;
}

/** A real HTTP server on this machine to which runs are called back. */
export async function openCallbackReceiver(): Promise<CallbackReceiver> {
  const addresses = new Map<string, { heard: Heard[]; answers: Answer[] }>();
  const double = await openHttpDouble((heard, response) => {
    const at = addresses.get(heard.url);
    if (at === undefined) return void response.writeHead(404).end();
    at.heard.push(heard);
    const answer = (at.answers.length > 1 ? at.answers.shift() : at.answers[0]) ?? 204;
    if (answer === 'drop') response.socket?.destroy();
    else response.writeHead(answer).end();
  });
  const host = `127.0.0.1:${double.port}`;
  return {
    host,
    address: (...answers) => {
      const path = `/callbacks/${addresses.size + 1}`;
      const at = { heard: [] as Heard[], answers };
      addresses.set(path, at);
      return { url: `http://${host}${path}`, heard: at.heard, answer: (...next) => void at.answers.splice(0, Infinity, ...next) };
    },
    close: double.close,
  };
}
