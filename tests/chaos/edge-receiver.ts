import type { ServerResponse } from 'node:http';
import { openHttpDouble } from '../../services/effect-worker/test-support/http-double.ts';

/** An address that holds each post open until it is released. */
interface HoldingAddress {
  url: string;
  posts(): number;
  /** Answers all posts, later ones too. */
  answer(): void;
}

export interface HoldingReceiver {
  /** As OUTBOUND_ALLOW_HOSTS names it. */
  host: string;
  address(): HoldingAddress;
  close(): Promise<void>;
}

/** A real HTTP server on this machine that receives callbacks. */
export async function openHoldingReceiver(): Promise<HoldingReceiver> {
  const addresses = new Map<string, { posts: number; isOpen: boolean; held: ServerResponse[] }>();
  const double = await openHttpDouble((received, response) => {
    const at = addresses.get(received.url);
    if (at === undefined) return void response.writeHead(404).end();
    at.posts += 1;
    if (at.isOpen) response.writeHead(204).end();
    else at.held.push(response);
  });
  const host = `127.0.0.1:${double.port}`;
  return {
    host,
    address: () => {
      const path = `/callbacks/${addresses.size + 1}`;
      const at = { posts: 0, isOpen: false, held: [] as ServerResponse[] };
      addresses.set(path, at);
      return {
        url: `http://${host}${path}`,
        posts: () => at.posts,
        answer: () => {
          at.isOpen = true;
          for (const response of at.held.splice(0)) response.writeHead(204).end();
        },
      };
    },
    close: double.close,
  };
}
