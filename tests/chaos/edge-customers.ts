import { z } from 'zod';
import { readStream } from '../helpers/read-stream.ts';
import type { Answered, LoadClient } from './edge-load.ts';

/** Gateways are used in turn. */
interface Deployment {
  readonly agentUrls: readonly string[];
  readonly routerUrls: readonly string[];
  keys: { routerKey: string; agentKey: string };
}

/** A conversation that was begun: its session and its only message. */
export interface Talk {
  created: Answered;
  /** Null when the session was refused. */
  sessionId: string | null;
  said: Answered | null;
}

/** A completion that was requested. */
export interface Call {
  isStream: boolean;
  answered: Answered;
  /** Every terminal frame of a stream; null for any other response. */
  ends: readonly ('done' | number)[] | null;
}

export interface Customers {
  /** Opens a session and posts a message to it. */
  talk(): Promise<Talk>;
  /** Long-polls until the turn is over. @throws when the log can't be read, or when the message was refused */
  waitFor(talk: Talk): Promise<void>;
  /** Every second one as a stream. */
  call(): Promise<Call>;
}

const created = z.looseObject({ id: z.string() });
const events = z.array(z.looseObject({ offset: z.number(), status: z.string().optional() }));

/** Whether the message was accepted: an accepted message has to be answered. */
export function isTaken({ said }: Talk): boolean {
  return said?.status === 201 || said?.status === 202;
}

export function customersOf(deployment: Deployment, client: LoadClient, text: string): Customers {
  const agent = { authorization: `Bearer ${deployment.keys.agentKey}` };
  const router = { authorization: `Bearer ${deployment.keys.routerKey}` };
  let turn = 0;
  const next = (urls: readonly string[]) => {
    turn += 1;
    return urls[turn % urls.length];
  };
  return {
    async talk() {
      const opened = await client.send('POST', `${next(deployment.agentUrls)}/sessions`, {}, agent);
      if (opened.status !== 201) return { created: opened, sessionId: null, said: null };
      const { id } = created.parse(JSON.parse(opened.text));
      const said = await client.send('POST', `${next(deployment.agentUrls)}/sessions/${id}/events`, { kind: 'user_message', text }, agent);
      return { created: opened, sessionId: id, said };
    },
    async waitFor(talk) {
      if (!isTaken(talk)) throw new Error(`a message was answered with ${talk.said?.status ?? talk.created.status}`);
      for (let from = 0; ; ) {
        const polled = await client.send('GET', `${next(deployment.agentUrls)}/sessions/${talk.sessionId}/events?min_offset=${from}`, null, agent);
        if (polled.status !== 200) throw new Error(`a poll was answered with ${polled.status}: ${polled.text}`);
        const news = events.parse(JSON.parse(polled.text));
        if (news.some(({ status }) => status === 'ready')) return;
        from = (news.at(-1)?.offset ?? from - 1) + 1;
      }
    },
    async call() {
      const isStream = turn % 2 === 0;
      const body = { model: 'scripted/assistant', stream: isStream, messages: [{ role: 'user', content: text }] };
      const answered = await client.send('POST', `${next(deployment.routerUrls)}/api/v1/chat/completions`, body, router);
      return { isStream, answered, ends: isStream && answered.status === 200 ? readStream(answered.text).ends : null };
    },
  };
}
