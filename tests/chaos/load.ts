import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { eventually } from '../helpers/eventually.ts';
import type { RetryingClient } from '../helpers/retrying-client.ts';
import { converse, type SentMessages } from '../helpers/session-logs.ts';
import { ROUTINE } from './agent-files.ts';
import { type CancelledRun, cancelRun } from './cancel-load.ts';
import { type ReadToEnd, readToEnd, streamedWords } from './client-stream.ts';
import { type WrittenCustomer, writeCustomer } from './customer-load.ts';
import { type Environment, TIMEOUT_MS } from './environment.ts';
import { type ChangedLog, changeLogs } from './log-change-load.ts';
import { type InjectedResults, injectResults } from './tool-event-load.ts';
import { type AcceptedDelivery, sendDelivery } from './webhook-load.ts';

/** A run that was accepted, and its callback address. */
export interface AcceptedRun {
  runId: string;
  key: string;
  callback: ReturnType<Environment['receiver']['address']>;
}

/** Everything that was accepted under the load. */
export interface Accepted {
  sessions: ReadonlyMap<string, SentMessages>;
  /** The addresses of event webhooks, by session. */
  eventWebhooks: ReadonlyMap<string, AcceptedRun['callback']>;
  runs: readonly AcceptedRun[];
  cancelled: readonly CancelledRun[];
  deliveries: readonly AcceptedDelivery[];
  streams: readonly ReadToEnd[];
  injected: readonly InjectedResults[];
  changedLogs: readonly ChangedLog[];
  customers: readonly WrittenCustomer[];
  /** Requests to the agent's model before the load. */
  modelAskedBefore: number;
  /** Redeliveries of calls before it. */
  redeliveredBefore: number;
}

export interface LoadOptions {
  /** A message that was answered with 202 is repeated until it is answered with its offset. */
  retriesAccepted?: boolean;
}

export interface Load {
  /** Messages, tool results, changes, runs and streams that were accepted or begun so far. */
  readonly begun: number;
  /** When streams ended with `[DONE]`, in epoch milliseconds. */
  readonly streamsDoneAtMs: readonly number[];
  /** Resolves once so much more has begun. @throws the first failure of the load */
  more(count: number): Promise<void>;
  /** Begins nothing more and waits for the rest. @throws when a client is not served in time, or wrongly */
  end(): Promise<Accepted>;
  /** Begins nothing more and does not wait for the rest. */
  abandon(): void;
}

/** Concurrent loops: conversations, tool results, changes of logs, customers, runs, cancelled runs, deliveries of webhooks, streams. */
const CUSTOMERS = 6;
const INTEGRATIONS = 2;
const CHANGERS = 2;
const REGISTRARS = 1;
const TRIGGERS = 3;
const CANCELLERS = 1;
const SENDERS = 2;
const READERS = 5;
/** Pause of a loop, which leaves CPU to processes that start. */
const PAUSE_MS = 150;
const MESSAGES = 4;
/** Of one event webhook; a conversation has fewer events. */
const MOST_FAULTY_POSTS = 60;
/** More than this means that a scenario never ends. */
const MAX_BEGUN = 20_000;
const ANSWER_SECONDS = 10;

const sessionRecord = z.looseObject({ id: z.string() });
const runEnvelope = z.looseObject({ run_id: z.string() });
const offsets = z.array(z.looseObject({ offset: z.number() }));

let conversations = 0;
let triggered = 0;

/** Each kind of client above, in loops until stopped. */
export function beginLoad(environment: Environment, options: LoadOptions = {}): Load {
  const { retriesAccepted = false } = options;
  const client = retriesAccepted ? environment.stubbornClient : environment.client;
  const sessions = new Map<string, SentMessages>();
  const runs: AcceptedRun[] = [];
  const cancelled: CancelledRun[] = [];
  const deliveries: AcceptedDelivery[] = [];
  const streams: ReadToEnd[] = [];
  const streamsDoneAtMs: number[] = [];
  const eventWebhooks = new Map<string, AcceptedRun['callback']>();
  const injected: InjectedResults[] = [];
  const changedLogs: ChangedLog[] = [];
  const customers: WrittenCustomer[] = [];
  const accepted: Omit<Accepted, 'redeliveredBefore'> = {
    sessions,
    eventWebhooks,
    runs,
    cancelled,
    deliveries,
    streams,
    injected,
    changedLogs,
    customers,
    modelAskedBefore: environment.model.asked,
  };
  let begun = 0;
  let isOver = false;
  let failure: unknown;
  const begin = () => {
    begun += 1;
    if (begun > MAX_BEGUN) throw new Error('the load was never ended');
  };
  const again = async (work: () => Promise<void>) => {
    while (!isOver && failure === undefined) {
      await work();
      await delay(PAUSE_MS);
    }
  };
  const fails = (error: unknown) => {
    failure ??= error;
  };
  const redeliveredBefore = environment.callRedeliveries();
  redeliveredBefore.catch(fails);
  const talk = async () => {
    const events = eventAddress(environment);
    const [id, said] = await holdConversation(client, begin, events);
    sessions.set(id, said);
    if (events !== null) eventWebhooks.set(id, events);
  };
  const trigger = async () => {
    begin();
    runs.push(await triggerRun(environment, client));
  };
  const cancel = async () => {
    begin();
    cancelled.push(await cancelRun(environment, client));
  };
  const send = async () => {
    begin();
    deliveries.push(await sendDelivery(environment));
  };
  const read = async () => {
    begin();
    const stream = await readToEnd(environment, streamedWords(environment));
    streams.push(stream);
    if (stream.ends[0] === 'done') streamsDoneAtMs.push(Date.now());
  };
  const inject = async () => {
    injected.push(await injectResults(client, begin));
  };
  const change = async () => {
    changedLogs.push(await changeLogs(environment, begin));
  };
  const register = async () => {
    customers.push(await writeCustomer(client, begin));
  };
  const all = [
    ...Array.from({ length: CUSTOMERS }, () => again(talk)),
    ...Array.from({ length: INTEGRATIONS }, () => again(inject)),
    ...Array.from({ length: CHANGERS }, () => again(change)),
    ...Array.from({ length: REGISTRARS }, () => again(register)),
    ...Array.from({ length: TRIGGERS }, () => again(trigger)),
    ...Array.from({ length: CANCELLERS }, () => again(cancel)),
    ...Array.from({ length: SENDERS }, () => again(send)),
    ...Array.from({ length: READERS }, () => again(read)),
  ].map((one) => one.catch(fails));
  return {
    get begun() {
      return begun;
    },
    streamsDoneAtMs,
    more: async (count) => {
      const wanted = begun + count;
      await eventually(() => failure !== undefined || begun >= wanted, { timeoutMs: TIMEOUT_MS });
      if (failure !== undefined) throw failure;
    },
    abandon: () => {
      isOver = true;
    },
    end: async () => {
      isOver = true;
      await Promise.all(all);
      if (failure !== undefined) throw failure;
      return { ...accepted, redeliveredBefore: await redeliveredBefore };
    },
  };
}

/** Of every second conversation: a receiver that refuses every fifth event and drops the connection of every eleventh. */
function eventAddress({ receiver }: Environment): AcceptedRun['callback'] | null {
  if (conversations % 2 !== 0) return null;
  const answers = Array.from({ length: MOST_FAULTY_POSTS }, (_, post) => (post % 11 === 10 ? 'drop' : post % 5 === 3 ? 503 : 204));
  return receiver.address(...answers, 204);
}

async function holdConversation(client: RetryingClient, begin: () => void, events: AcceptedRun['callback'] | null): Promise<[string, SentMessages]> {
  const webhook = events === null ? {} : { event_webhook_url: events.url };
  const { id } = sessionRecord.parse(accepted(await client.post('/sessions', webhook)).body);
  conversations += 1;
  const said = await converse({
    number: conversations,
    messages: MESSAGES,
    textOf: (words, isSlow) => (isSlow ? `${words} slowly` : words),
    say: async (text) => {
      begin();
      accepted(await client.post(`/sessions/${id}/events`, { kind: 'user_message', text, idempotency_key: text }));
    },
    answeredFrom: (offset) => answeredFrom(client, id, offset),
  });
  return [id, said];
}

/** Long-polls for the agent's next message. @throws when none comes in time */
async function answeredFrom(client: RetryingClient, sessionId: string, offset: number): Promise<number> {
  const untilMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const path = `/sessions/${sessionId}/events?min_offset=${offset}&kinds=assistant_message&wait_for_data=${ANSWER_SECONDS}`;
    const { status, body } = await client.get(path);
    const last = status === 200 ? offsets.parse(body).at(-1) : undefined;
    if (last !== undefined) return last.offset + 1;
    if (performance.now() > untilMs) throw new Error(`the agent never answered in ${sessionId} from ${offset} on (${status}): ${JSON.stringify(body)}`);
  }
}

/** Triggers a run and waits for its callback, which bounds the runs in flight. */
async function triggerRun(environment: Environment, client: RetryingClient): Promise<AcceptedRun> {
  triggered += 1;
  const key = `run-${process.pid}-${triggered}`;
  // Every third receiver refuses the first posts.
  const callback = triggered % 3 === 0 ? environment.receiver.address(500, 204) : environment.receiver.address(204);
  const fields = { input: { key }, callback_url: callback.url, idempotency_key: key };
  const { status, body } = await client.post(`/routines/${ROUTINE}/trigger`, fields);
  if (status !== 202 && status !== 409) throw new Error(`a trigger was answered ${status}: ${JSON.stringify(body)}`);
  await eventually(() => callback.received.length > 0, { timeoutMs: TIMEOUT_MS });
  return { runId: runEnvelope.parse(body).run_id, key, callback };
}

function accepted(answer: { status: number; body: unknown }): { body: unknown } {
  if (answer.status < 200 || answer.status > 299) throw new Error(`a request was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer;
}
