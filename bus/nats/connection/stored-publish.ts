import { type MsgHdrs, TimeoutError } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { isTooOldForReplicas } from '../cluster-version.ts';
import { InProcessError } from './broker-errors.ts';
import { LeaderlessStreams } from './leaderless-streams.ts';
import type { NatsLink } from './link.ts';
import type { Requests } from './requests.ts';
import { storeMessage } from './store-message.ts';

/** Unacknowledged; one second at the broker's 20,000 messages a second. More are refused. */
const MAX_WAITING = 20_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/**
 * A leader stores within milliseconds what it can store. One that still has an id in process after this has lost the message: it was elected and gave the
 * message the place of another one, or its election overtook it. nats-server before 2.11 remembers such an id for the whole dedupe window.
 */
const LOST_AFTER_MS = 3_000;

/**
 * Resolves once the broker has stored the message, or found it stored already.
 * @param headersAgain gives those in place of `extraHeaders`, where the message may be stored twice: under a second id
 */
export type StoredPublish = (
  subject: string,
  messageId: string,
  body: string,
  extraHeaders?: MsgHdrs,
  headersAgain?: () => MsgHdrs | undefined,
) => Promise<{ sequence: number; duplicate: boolean }>;

export interface StoredPublishDeps {
  link: NatsLink;
  budgetMs: number;
  onFull: () => void;
  /** The connection of a try; absent: the main one. */
  requests?: () => Requests;
}

/**
 * Retries keep the message id, so that a message with a lost ack is stored once. Order is not kept across retries. In a cluster a message that is being stored
 * is not sent a second time: its leader would log it twice (docs/adr/0124).
 */
export function storedPublisher({ link, budgetMs, onFull, requests = () => link.requests }: StoredPublishDeps): StoredPublish {
  let waiting = 0;
  let waitingBytes = 0;
  /** By subject and message id. */
  const inFlight = new Map<string, ReturnType<StoredPublish>>();
  const leaderless = link.isCluster ? new LeaderlessStreams(() => !isTooOldForReplicas(link.main.info?.version)) : null;
  const publish: StoredPublish = async (subject, messageId, body, extraHeaders, headersAgain = () => extraHeaders) => {
    link.retries.assertOpen();
    const bytes = Buffer.from(body);
    if (waiting >= MAX_WAITING || waitingBytes + bytes.byteLength > MAX_WAITING_BYTES) {
      throw new SwitchyardError('bus.full', 'too much waits to be stored', { details: { waiting } });
    }
    waiting += 1;
    waitingBytes += bytes.byteLength;
    const toStream = leaderless?.publishTo(subject) ?? null;
    try {
      let again = 0;
      let inProcessSince: number | null = null;
      const send = async (timeoutMs: number) => {
        const askedAt = performance.now();
        const message = { subject, messageId, bytes, extraHeaders: again === 0 ? extraHeaders : headersAgain(), again };
        const store = (withinMs: number) => storeMessage(requests(), message, withinMs);
        try {
          if (toStream === null) return await store(timeoutMs);
          return await toStream.answered(() => store(Math.max(1, timeoutMs - (performance.now() - askedAt))));
        } catch (error) {
          if (!(error instanceof InProcessError)) throw error;
          inProcessSince ??= performance.now();
          // Not by now: a process that was paused reads an answer late.
          if (askedAt - inProcessSince >= LOST_AFTER_MS) {
            again += 1;
            inProcessSince = null;
          }
          throw error;
        }
      };
      const stored = await link.retries.run('store a message', budgetMs, async (timeoutMs, leftMs, isGivenUp) => {
        if (toStream === null) return send(timeoutMs);
        const askedAt = performance.now();
        const mayBeSent = toStream.mayBeSent(leftMs, isGivenUp);
        if (mayBeSent !== true && !(await mayBeSent)) throw new TimeoutError();
        return send(Math.max(1, Math.min(timeoutMs, leftMs - (performance.now() - askedAt))));
      });
      return again === 0 ? stored : { ...stored, duplicate: true };
    } catch (error) {
      if (error instanceof SwitchyardError && error.code === 'bus.full') onFull();
      throw error;
    } finally {
      toStream?.leave();
      waiting -= 1;
      waitingBytes -= bytes.byteLength;
    }
  };
  if (!link.isCluster) return publish;
  return async (subject, messageId, body, extraHeaders, headersAgain) => {
    const key = `${subject} ${messageId}`;
    const former = inFlight.get(key);
    if (former !== undefined) return { ...(await former), duplicate: true };
    const storing = publish(subject, messageId, body, extraHeaders, headersAgain);
    inFlight.set(key, storing);
    try {
      return await storing;
    } finally {
      inFlight.delete(key);
    }
  };
}
