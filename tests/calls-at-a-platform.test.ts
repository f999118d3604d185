import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Bus } from '../bus/bus.ts';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { actorFields } from '../bus/messages/actor-fields.ts';
import { readFrame } from '../bus/messages/frame.ts';
import type { RouterCall } from '../bus/messages/router.ts';
import { partitionOf } from '../bus/partition.ts';
import { addresses, subjectOf } from '../bus/subjects.ts';
import { startRouterWorker } from '../services/router-worker/service.ts';
import { recordedLog } from '../services/router-worker/test-support/recorded-log.ts';
import { systemClock } from '../shared/clock.ts';
import { routerConfig } from '../shared/config/router-config.ts';
import { ulid } from '../shared/ids.ts';
import { hashOfSecret } from '../shared/keys/caller-key.ts';
import { modelKeys } from '../shared/keys/file-keys.ts';
import type { Database } from '../shared/storage/database.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { dataIn } from '../shared/surfaces/parts/text-in.ts';
import { eventually } from './helpers/eventually.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';

const SESSION = 'ses_1';
const CALL_ENDED = 'a router call has ended';
const doneEvent = z.object({ type: z.literal('done'), usage: z.object({ cost: z.number().optional() }) });
const variables = { AGENT: 'sk-of-the-agent', OFF: 'sk-off', POOR: 'sk-poor', OTHER: 'sk-other' };
const prices = { prompt: '1', completion: '1' };
const config = {
  providers: [{ slug: 'local', name: 'Local', kind: 'scripted' }],
  models: [
    { id: 'acme/first', aliases: ['assistant'], endpoints: [{ provider: 'local', upstream_model: 'first', prices }] },
    { id: 'acme/second', endpoints: [{ provider: 'local', upstream_model: 'second', prices }] },
  ],
  keys: [
    { id: 'agent', key: '${AGENT}' },
    { id: 'off', key: '${OFF}', disabled: true },
    { id: 'poor', key: '${POOR}', limit: '0' },
  ],
  timeouts: { first_token_ms: 2_000, idle_ms: 2_000 },
};
/** Of the deployment of the agent, when its platform is another one: it has none of the models, and none of the keys of that. */
const elsewhere = {
  providers: [{ slug: 'other', kind: 'scripted' }],
  models: [{ id: 'other/model', endpoints: [{ provider: 'other', upstream_model: 'x' }] }],
  keys: [{ id: 'other', key: '${OTHER}' }],
  timeouts: { first_token_ms: 4_000, idle_ms: 4_000 },
};

interface Place {
  bus: Bus;
  database: Database;
  lines: ReturnType<typeof recordedLog>['lines'];
  close(): Promise<void>;
}

let platform: RouterInProcess;
const places = new Set<Place>();

beforeAll(async () => {
  platform = await openRouterInProcess({ config, variables });
});
afterAll(async () => {
  for (const place of places) await place.close();
  await platform.close();
});

/** A worker that executes the agent's calls itself, or sends them to the platform. @param secret of the agent's key */
async function open(isHere: boolean, secret = variables.AGENT, baseUrl = platform.url): Promise<Place> {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  const recorded = recordedLog();
  const own = routerConfig.parse(isHere ? config : elsewhere);
  const router = { baseUrl, apiKey: secret, keyHash: hashOfSecret(secret) };
  const fileKeys = modelKeys(own, variables);
  const deps = { config: own, environment: {}, bus, database, cache: null, fileKeys, log: recorded.log, clock: systemClock, platform: isHere ? null : router };
  const worker = await startRouterWorker(deps);
  const place = {
    bus,
    database,
    lines: recorded.lines,
    close: async () => {
      places.delete(place);
      await worker.stop();
      await bus.close();
      await database.close();
    },
  };
  places.add(place);
  return place;
}

const tools = [
  {
    type: 'function' as const,
    function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
  },
];

/** The command that the actor gets, and the events that readers get. */
async function callAt({ bus }: Place, request: Partial<RouterCall['request']>, secret = variables.AGENT, maxTokens: number | null = null) {
  const nowMs = systemClock.nowMs();
  const call: RouterCall = {
    ...{ v: 1, callId: `call_${ulid()}`, origin: SESSION, want: 'frames', surface: 'parts', deadlineAtMs: nowMs + 60_000, createdAtMs: nowMs },
    ...{ detached: false, republished: false, keyId: `sha256:${hashOfSecret(secret)}`, traceparent: null, maxTokens },
    request: { messages: [{ role: 'user', content: 'Hello!' }], model: 'acme/first', session_id: SESSION, ...request },
    reply: { sessionId: SESSION, ...actorFields('trn_1') },
  };
  const frames: Uint8Array[] = [];
  const reading = bus.tokens.subscribe(subjectOf(addresses.tokens, SESSION, call.callId), (_, frame) => frames.push(frame));
  const commands: string[] = [];
  const partition = bus.commands.read(partitionOf(SESSION), { sequence: 0, fingerprint: null }, async (all) => {
    for (const { messageId, body } of all) if (messageId === call.callId) commands.push(body);
  });
  await bus.work.publish('router.turn', call.callId, JSON.stringify(call));
  await eventually(() => commands.length > 0, { timeoutMs: 60_000 });
  await reading.stop();
  await partition.stop();
  const { toolCalls = [], ...command } = JSON.parse(commands[0] ?? '');
  const kinds = frames.map((frame) => readFrame(call.callId, frame)?.kind);
  return {
    command,
    toolCalls: toolCalls.map(({ name, arguments: text }: { name: string; arguments: string }) => [name, text]),
    last: kinds.at(-1),
    done: doneOf(frames),
  };
}

function doneOf(frames: readonly Uint8Array[]) {
  return frames.flatMap((frame) => dataIn(frame)).flatMap((event) => doneEvent.safeParse(event).data ?? [])[0];
}

type Case = [what: string, content: string, request: Partial<RouterCall['request']>, type: string];
const completed = 'call.completed';
const failed = 'call.failed';
const cases: Case[] = [
  ['an answer', 'What is a warranty?', {}, completed],
  ['an answer of the model behind an alias', 'What is it?', { model: 'assistant' }, completed],
  ['a tool call', 'call get_weather {"city":"Rome"}', { tools }, completed],
  ['an answer that ends for length', 'Explain at length, please', { max_tokens: 3 }, completed],
  ['an answer that is refused', '!fail refuse Hello', {}, completed],
  ['an answer of the next model', '!fail 500 on=first How are you?', { models: ['acme/second'] }, completed],
  ['a failed connection', '!fail connect', {}, failed],
  ['status 429', '!fail 429 retry-after=7', {}, failed],
  ['status 500', '!fail 500', {}, failed],
  ['status 529', '!fail 529', {}, failed],
  ['silence', '!fail timeout', {}, failed],
  ['an error inside an answer', '!fail error-event after=2 one two three four', {}, failed],
  ['an answer that breaks off', '!fail cut after=2 one two three four', {}, failed],
  ['a chunk that is not valid', '!fail malformed after=2 one two three four', {}, failed],
  ['an answer without content', '!fail empty', {}, failed],
  ['an unknown model', 'Hello', { model: 'acme/none' }, failed],
];

/** Of two callers: ids of tool calls are random, messages name the provider that was asked, and a cost is the platform's matter. */
function comparable({ command, toolCalls, last }: Awaited<ReturnType<typeof callAt>>) {
  const { failure, callId: _, commandId: __, sentAtMs: ___, ...rest } = command;
  return { ...rest, toolCalls, last, code: failure?.code ?? null };
}

describe("an agent's model call", () => {
  let here: Place;
  let there: Place;
  beforeAll(async () => {
    here = await open(true);
    there = await open(false);
  });

  it.each(cases)('DESIGN 8: is at another platform as at home: %s', async (_, content, request, type) => {
    const messages = [{ role: 'user' as const, content }];
    const [home, away] = await Promise.all([callAt(here, { ...request, messages }), callAt(there, { ...request, messages })]);

    expect(home.command.type).toBe(type);
    expect(comparable(away)).toEqual(comparable(home));
  });

  it.each([
    ['disabled', variables.OFF, 'router.key_refused'],
    ['unknown there', 'sk-unknown', 'router.key_refused'],
    ['without credit', variables.POOR, 'router.payment_required'],
  ])('is refused under a key that is %s, as at home', async (_, secret, code) => {
    const place = await open(false, secret);
    for (const one of [here, place]) expect((await callAt(one, {}, secret)).command).toMatchObject({ type: 'call.failed', failure: { code } });
    expect(JSON.stringify(place.lines)).not.toContain(secret);
    expect((await place.database.query('select 1 from usage_ledger')).rowCount).toBe(0);
    // The next one uses its database: to load one takes a second of CPU.
    await place.close();
  });

  it('is billed there and leaves no record here', async () => {
    const before = (await platform.database.query('select 1 from usage_ledger')).rowCount;
    await callAt(there, {});
    await eventually(async () => (await platform.database.query('select 1 from usage_ledger')).rowCount > before, { timeoutMs: 60_000 });

    const { rows } = await platform.database.query<{ key_id: string }>('select distinct key_id from usage_ledger');
    expect(rows).toEqual([{ key_id: 'agent' }]);
    expect((await there.database.query('select 1 from usage_ledger')).rowCount).toBe(0);
  });

  it('costs what the platform bills, in the log line and in the last frame', async () => {
    const costs = [];
    for (const place of [here, there]) {
      place.lines.length = 0;
      const { done } = await callAt(place, {});
      await eventually(() => place.lines.some(({ message }) => message === CALL_ENDED), { timeoutMs: 60_000 });
      costs.push([place.lines.find(({ message }) => message === CALL_ENDED)?.fields.cost_usd, done?.usage?.cost]);
    }

    expect(costs[1]).toEqual(costs[0]);
    expect(costs[0]).toEqual([expect.any(Number), costs[0]?.[0]]);
    expect(costs[0]?.[0]).toBeGreaterThan(0);
  });

  it('keeps within the most tokens of the deployment', async () => {
    const [home, away] = [await callAt(here, {}, variables.AGENT, 2), await callAt(there, {}, variables.AGENT, 2)];
    expect([home.command.finishReason, away.command.finishReason]).toEqual(['length', 'length']);
  });

  it('fails when the platform cannot be reached', async () => {
    const place = await open(false, variables.AGENT, 'http://127.0.0.1:9');
    expect((await callAt(place, {})).command).toMatchObject({ type: 'call.failed', failure: { code: 'router.provider_unavailable' } });
  });
});
