import { expect } from 'vitest';
import { z } from 'zod';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import type { CallbackReceiver } from '../helpers/callback-receiver.ts';
import { readStream } from '../helpers/read-stream.ts';
import { type RetryingClient, retryingClient } from '../helpers/retrying-client.ts';
import { plannedCall, requestFor } from '../helpers/scripted-deployment.ts';
import { checkLog, converse, type SentMessages, storedSessions } from '../helpers/session-logs.ts';
import { type FailPointEnvironment, type OneTool, routineOf } from './fail-point-environment.ts';

/** What one pulse begins. */
const CONVERSATIONS = 4;
const RUNS = 2;
const STREAMS = 2;
const MESSAGES = 2;
/** Bound of what is in flight: beyond it a pulse begins nothing. */
const MAX_UNDER_WAY = 60;
/** The death of a worker is noticed after 15 s, that of an owner after 5 s; work may wait for one of each in sequence. */
const TIMEOUT_MS = 90_000;
/** Below the client's timeout, so that the server's answer names what is missing. */
const ANSWER_SECONDS = 15;
/** The status of a long-poll whose time is over. */
const NOTHING_YET = 504;

interface Run {
  id: string;
  tool: OneTool;
  /** The tool call's argument. */
  key: string;
  callback: ReturnType<CallbackReceiver['address']>;
}
interface Stream {
  plan: string;
  text: string;
}

/** The workload while processes die (conversations, runs, streams) and its outcome. */
export interface Load {
  /** Begins some of each kind. Returns at once. @param tool what the runs call */
  pulse(tool: OneTool): void;
  /** Resolves when everything begun is answered. @throws the first failure */
  answered(): Promise<void>;
  /** Accepted messages, by session. */
  readonly said: ReadonlyMap<string, SentMessages>;
  /** Streams begun so far. */
  readonly streams: number;
  /** The most requests that one stream's call made to its provider, among the streams begun after the first `since`. */
  mostCallsSince(streams: number): number;
  /** Compares all that was begun with what is stored now. */
  check(): Promise<Checked>;
}

/** Counts for the line that a pass prints. */
interface Checked {
  conversations: number;
  runs: number;
  streams: number;
  streamsWithError: number;
  /** Calls of the once-only tool that were reported as `outcome_unknown`. */
  outcomesUnknown: number;
  /** Repeated calls of the repeatable tool. */
  lookedAgain: number;
}

export function startLoad(environment: FailPointEnvironment): Load {
  const { cluster, receiver, upstream } = environment;
  const nextUrl = () => cluster.agentUrls[0] ?? '';
  const client = retryingClient({ nextUrl, key: cluster.keys.agentKey, timeoutMs: TIMEOUT_MS });
  const agent = agentClient(nextUrl, cluster.keys.agentKey);
  const conversations = new Map<string, SentMessages>();
  const runs: Run[] = [];
  const streams: Stream[] = [];
  const underWay: Promise<void>[] = [];
  let number = 0;
  let inFlight = 0;

  async function talk(which: number): Promise<void> {
    const { id } = created.parse((await client.post('/sessions', {})).body);
    const said = await converse({
      number: which,
      messages: MESSAGES,
      textOf: (words, isSlow) => (isSlow ? `${words} slowly` : words),
      say: async (text) => {
        const { status, body } = await client.post(`/sessions/${id}/events`, { kind: 'user_message', text, idempotency_key: text });
        expect([201, 202], JSON.stringify(body)).toContain(status);
      },
      answeredFrom: (offset) => answeredFrom(client, id, offset),
    });
    conversations.set(id, said);
  }

  async function run(tool: OneTool, key: string): Promise<void> {
    const callback = receiver.address();
    const fields = { input: { key }, callback_url: callback.url, idempotency_key: key };
    const { status, body } = await client.post(`/routines/${routineOf(tool)}/trigger`, fields);
    expect([202, 409], JSON.stringify(body)).toContain(status);
    runs.push({ id: triggered.parse(body).run_id, tool, key, callback });
  }

  async function stream(): Promise<void> {
    const plan = plannedCall({ first: [{ say: 'word ', times: 4, everyMs: 30 }, 'finish', 'usage', 'done', 'end'] });
    const begun = { plan: plan.name, text: '' };
    streams.push(begun);
    const response = await fetch(`${cluster.routerUrls[0]}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${cluster.keys.routerKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(requestFor(plan, 'first', true)),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    begun.text = await response.text();
  }

  const begin = (work: Promise<void>) => {
    inFlight += 1;
    // answered() rejects with the failure; until then the promise is not awaited.
    const over = work.finally(() => {
      inFlight -= 1;
    });
    over.catch(() => {});
    underWay.push(over);
  };
  const next = () => {
    number += 1;
    return number;
  };
  return {
    pulse: (tool) => {
      if (inFlight >= MAX_UNDER_WAY) return;
      for (let count = 0; count < CONVERSATIONS; count += 1) begin(talk(next()));
      for (let count = 0; count < RUNS; count += 1) begin(run(tool, `${tool}-${next()}`));
      for (let count = 0; count < STREAMS; count += 1) begin(stream());
    },
    answered: async () => {
      await Promise.all(underWay);
    },
    said: conversations,
    get streams() {
      return streams.length;
    },
    mostCallsSince: (from) => Math.max(0, ...streams.slice(from).map(({ plan }) => upstream.calls(plan).length)),
    check: async () => {
      await checkLogs(environment, agent, conversations);
      await environment.tools.counted();
      const outcomes = runs.map((one) => checkRun(one, environment));
      const withError = streams.map(checkStream).filter((end) => end !== 'done');
      return {
        conversations: conversations.size,
        runs: runs.length,
        streams: streams.length,
        streamsWithError: withError.length,
        outcomesUnknown: outcomes.filter((outcome) => outcome === 'unknown').length,
        lookedAgain: outcomes.filter((outcome) => outcome === 'again').length,
      };
    },
  };
}

const created = z.looseObject({ id: z.string() });
const offsets = z.array(z.looseObject({ offset: z.number() }));
const triggered = z.looseObject({ run_id: z.string() });
const payload = z.looseObject({
  run_id: z.string(),
  output: z.looseObject({ booked: z.string(), looked: z.string() }).nullable(),
});

/** Long-polls for the agent's next message; the client repeats what is refused for now. @returns the offset behind it @throws when none comes, and at other refusals */
async function answeredFrom(client: RetryingClient, sessionId: string, offset: number): Promise<number> {
  const path = `/sessions/${sessionId}/events?min_offset=${offset}&kinds=assistant_message&wait_for_data=${ANSWER_SECONDS}`;
  const untilMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const { status, body } = await client.get(path);
    expect([200, NOTHING_YET], JSON.stringify(body)).toContain(status);
    const last = status === 200 ? offsets.parse(body).at(-1) : undefined;
    if (last !== undefined) return last.offset + 1;
    if (performance.now() > untilMs) throw new Error(`the agent never answered in ${sessionId} from ${offset} on`);
  }
}

async function checkLogs({ database, model }: FailPointEnvironment, agent: AgentClient, conversations: ReadonlyMap<string, SentMessages>): Promise<void> {
  const stored = await storedSessions(database, [...conversations.keys()]);
  for (const [id, said] of conversations) {
    const log = await agent.poll(id, 0, '&limit=1000&wait_for_data=0');
    checkLog(log, said, stored.get(id), model.answerTo);
  }
  const { rows } = await database.query('select id, source, reason from dead_letters');
  expect(rows).toEqual([]);
}

/** It settled and posted one payload. The once-only call happened at most once, and the model was given `outcome_unknown` where that is so. */
function checkRun({ id, tool, key, callback: { received } }: Run, { tools }: FailPointEnvironment): 'once' | 'again' | 'unknown' {
  const bodies = new Set(received.map(({ body }) => String(body)));
  expect(bodies.size, id).toBe(1);
  const { run_id: runId, output } = payload.parse(JSON.parse([...bodies][0] ?? ''));
  expect(runId).toBe(id);
  if (output === null) throw new Error(`a run has failed: ${[...bodies][0]}`);
  const toolResult = tool === 'look' ? output.looked : output.booked;
  const calls = (tool === 'look' ? tools.looked : tools.booked).get(key) ?? 0;
  if (toolResult.includes('outcome_unknown')) {
    expect({ tool, isTwice: calls > 1 }, toolResult).toEqual({ tool: 'book', isTwice: false });
    return 'unknown';
  }
  expect(toolResult).toBe(tool === 'look' ? `looked ${key}` : `booked ${key}`);
  if (tool === 'book') expect(calls).toBe(1);
  return calls > 1 ? 'again' : 'once';
}

/** @returns how the stream ended */
function checkStream({ plan, text }: Stream): 'done' | number {
  const { ends, behindEnd } = readStream(text);
  expect({ ends: ends.length, behindEnd }, `${plan}: ${text}`).toEqual({ ends: 1, behindEnd: 0 });
  return ends[0] ?? 0;
}
