import { z } from 'zod';
import { openServerProcess, type ServerProcess } from './server-process.ts';

/** A status, or a closed connection in place of a response. */
type Answer = number | 'drop';

const post = z.object({ path: z.string(), headers: z.record(z.string(), z.unknown()), body: z.string() });

interface ReceiverAddress {
  url: string;
  /** The posts, in order. */
  received: Pick<z.infer<typeof post>, 'headers' | 'body'>[];
}

/** A receiver of callbacks and events in a process of its own. */
export interface ReceiverProcess extends Pick<ServerProcess, 'caughtUp' | 'close'> {
  /** As OUTBOUND_ALLOW_HOSTS names it. */
  host: string;
  /** How many it has received in all. */
  readonly posts: number;
  /** A separate address, with its responses in order, of which the last is repeated. Without any it accepts all. */
  address(...answers: Answer[]): ReceiverAddress;
}

/** For loads that leave their process too little CPU to answer each post within 10 s: an event whose posts all time out is a dead letter. */
export async function openReceiverProcess(): Promise<ReceiverProcess> {
  const addresses = new Map<string, ReceiverAddress['received']>();
  let posts = 0;
  const server = await openServerProcess('receiver-process.mjs', (sent) => {
    const { path, headers, body } = post.parse(sent);
    posts += 1;
    addresses.get(path)?.push({ headers, body });
  });
  const host = `127.0.0.1:${server.port}`;
  return {
    host,
    get posts() {
      return posts;
    },
    address: (...answers) => {
      const path = `/${addresses.size + 1}/${answers.length === 0 ? 204 : answers.join(',')}`;
      const received: ReceiverAddress['received'] = [];
      addresses.set(path, received);
      return { url: `http://${host}${path}`, received };
    },
    caughtUp: server.caughtUp,
    close: server.close,
  };
}
