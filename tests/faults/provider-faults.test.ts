import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { post } from '../../services/router-gateway/test-support/http-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { DIALECTS, type DialectName, openUpstreamOf, UPSTREAM_MODELS } from '../helpers/http-dialects.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { watchPauses } from '../helpers/pauses.ts';
import { openRouterInProcess, type RouterInProcess } from '../helpers/router-in-process.ts';
import type { RecordingUpstream } from '../upstreams/loopback-upstream.ts';
import { type Ending, FAULT_ROWS, type FaultRow, isSilent, PIECES, TEXT } from './fault-rows.ts';

/** Of the router: the longest silence of a provider. Healthy ones answer within it on a busy machine. */
const SILENCE_MS = 4_000;
/** Far beyond all limits: a call that takes longer hangs. */
const HANGS_AFTER_MS = 60_000;
const AT_ONCE = 6;
const KEY = 'sk-caller-0123456789';
const MANAGER = 'sk-manager-0123456789';
/** USD: 12 tokens of the prompt at 1 per million, 5 of the answer at 2. */
const FULL_COST = 0.000_022;

/** One row in one dialect, with its own pair of providers and its own model. */
interface Case {
  dialect: DialectName;
  row: FaultRow;
  slug: string;
  first: RecordingUpstream;
  second: RecordingUpstream;
}

/** What a client received of one call. */
interface Received {
  status: number;
  contentType: string;
  id: string;
  text: string;
  isComplete: boolean;
  /** Requests that the two providers got for it. */
  asked: [first: number, second: number];
}

const cases: Case[] = [];
const received = new Map<string, Received>();
/** Of all calls. */
const ids: string[] = [];
const watch = watchPauses();
const nameOf = ({ dialect, row }: Pick<Case, 'dialect' | 'row'>, isStream: boolean) => `${dialect}: ${row.fault}, ${isStream ? 'stream' : 'whole'}`;
let router: RouterInProcess;

beforeAll(async () => {
  for (const dialect of DIALECTS) {
    for (const [index, row] of FAULT_ROWS.entries()) {
      const [first, second] = [await openUpstreamOf(dialect), await openUpstreamOf(dialect)];
      first.answer(row.scenario);
      second.answer(row.ending.kind === 'exhausted' ? row.scenario : { text: [...PIECES] });
      cases.push({ dialect, row, slug: `${dialect}-${index}`, first, second });
    }
  }
  // When all are open: another one would get its port.
  await Promise.all(cases.flatMap(({ row, first }) => (row.isClosed ? [first.close()] : [])));
  const config = {
    providers: cases.flatMap(({ dialect, slug, first, second }) => [
      { slug: `${slug}-a`, name: 'First', kind: dialect, base_url: first.baseUrl, api_key: '${VENDOR_KEY}' },
      { slug: `${slug}-b`, name: 'Second', kind: dialect, base_url: second.baseUrl, api_key: '${VENDOR_KEY}' },
    ]),
    models: cases.map(({ dialect, slug }) => ({
      id: `test/${slug}`,
      endpoints: ['a', 'b'].map((one) => ({ provider: `${slug}-${one}`, upstream_model: UPSTREAM_MODELS[dialect], prices: { prompt: '1', completion: '2' } })),
    })),
    keys: [
      { id: 'caller', key: '${CALLER_KEY}', limit: '1000' },
      { id: 'manager', key: '${MANAGER_KEY}', management: true },
    ],
    timeouts: { connect_ms: 5_000, first_token_ms: SILENCE_MS, idle_ms: SILENCE_MS, total_ms: 120_000 },
  };
  router = await openRouterInProcess({ config, variables: { VENDOR_KEY: 'sk-vendor', CALLER_KEY: KEY, MANAGER_KEY: MANAGER } });
  const silent = cases.filter(({ row }) => isSilent(row));
  await Promise.all([
    inParallel(silent, silent.length, ask),
    inParallel(
      cases.filter((one) => !silent.includes(one)),
      AT_ONCE,
      ask,
    ),
  ]);
}, 240_000);

afterAll(async () => {
  watch.stop();
  await router.close();
  await Promise.all(cases.flatMap(({ first, second }) => [first.close(), second.close()]));
});

/** A call of each form, one after the other: both have the same providers. */
async function ask(one: Case): Promise<void> {
  for (const isStream of [true, false]) received.set(nameOf(one, isStream), await askUnpaused(one, isStream));
}

/** Again when the process was paused meanwhile: the call may have lost its lease, and its provider may have timed out. */
async function askUnpaused(one: Case, isStream: boolean): Promise<Received> {
  for (;;) {
    const { pauses } = watch;
    const got = await askOnce(one, isStream);
    ids.push(got.id);
    if (watch.pauses === pauses) return got;
  }
}

async function askOnce({ slug, first, second }: Case, isStream: boolean): Promise<Received> {
  const before = [first.requests.length, second.requests.length] as const;
  const provider = { order: [`${slug}-a`, `${slug}-b`] };
  const body = { model: `test/${slug}`, provider, stream: isStream, messages: [{ role: 'user', content: 'hi' }] };
  const posted = post(`${router.url}/api/v1/chat/completions`, body, { authorization: `Bearer ${KEY}` });
  const timer = setTimeout(posted.leave, HANGS_AFTER_MS);
  const answer = await posted.answer;
  const isComplete = await answer.ended;
  clearTimeout(timer);
  return {
    status: answer.status,
    contentType: String(answer.headers['content-type']),
    id: String(answer.headers['x-generation-id']),
    text: answer.text,
    isComplete,
    asked: [first.requests.length - before[0], second.requests.length - before[1]],
  };
}

const errorObject = z.object({ code: z.number().int(), message: z.string().min(1), metadata: z.looseObject({ error_type: z.string().min(1) }) });
const errorBody = z.strictObject({ error: z.strictObject({ ...errorObject.shape, type: z.string().min(1), param: z.string() }) });
const usage = z.looseObject({ prompt_tokens: z.number().int(), completion_tokens: z.number().int(), cost: z.number() });
const completion = z.looseObject({
  object: z.literal('chat.completion'),
  provider: z.string(),
  choices: z.tuple([
    z.looseObject({
      message: z.looseObject({ content: z.string().nullable(), reasoning: z.string().nullish() }),
      finish_reason: z.string(),
      error: errorObject.optional(),
    }),
  ]),
  usage: usage.optional(),
});
const chunk = z.looseObject({
  object: z.literal('chat.completion.chunk'),
  provider: z.string(),
  choices: z.array(
    z.looseObject({ delta: z.looseObject({ content: z.string().nullish(), reasoning: z.string().nullish() }), finish_reason: z.string().nullable() }),
  ),
  usage: usage.optional(),
  error: errorObject.optional(),
});

/** The answer in one form, whatever was asked for. */
interface Outcome {
  text: string;
  reasoning: string;
  finish: string;
  provider: string;
  error: number | null;
  cost: number | null;
}

function outcomeOf({ contentType, text }: Received): Outcome {
  if (contentType.startsWith('application/json')) {
    const whole = completion.parse(JSON.parse(text));
    const [{ message, finish_reason: finish, error }] = whole.choices;
    return {
      text: message.content ?? '',
      reasoning: message.reasoning ?? '',
      finish,
      provider: whole.provider,
      error: error?.code ?? null,
      cost: whole.usage?.cost ?? null,
    };
  }
  const lines = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []));
  const isDone = lines.at(-1) === '[DONE]';
  const chunks = lines.slice(0, isDone ? -1 : undefined).map((line) => chunk.parse(JSON.parse(line)));
  const errors = chunks.filter(({ error }) => error !== undefined);
  const finishes = chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: finish }) => finish ?? []));
  // One end: [DONE], or the error chunk with nothing behind it.
  expect({ errors: errors.length, finishes: finishes.length }).toEqual({ errors: isDone ? 0 : 1, finishes: 1 });
  expect(isDone || chunks.at(-1)?.error !== undefined).toBe(true);
  expect(chunks.filter((one) => one.usage !== undefined)).toHaveLength(isDone ? 1 : 0);
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  return {
    text: deltas.map(({ content }) => content ?? '').join(''),
    reasoning: deltas.map(({ reasoning }) => reasoning ?? '').join(''),
    finish: finishes[0] ?? '',
    provider: chunks.at(-1)?.provider ?? '',
    error: errors[0]?.error?.code ?? null,
    cost: chunks.find((one) => one.usage !== undefined)?.usage?.cost ?? null,
  };
}

const generation = z.object({
  data: z.looseObject({
    id: z.string(),
    total_cost: z.number(),
    finish_reason: z.string().nullable(),
    provider_name: z.string().nullable(),
    streamed: z.boolean(),
    native_tokens_completion: z.number().nullable(),
    tokens_completion: z.number(),
    provider_responses: z.array(z.looseObject({ provider_name: z.string(), status: z.number() })),
  }),
});

async function recordOf(id: string) {
  return eventually(async () => {
    const response = await fetch(`${router.url}/api/v1/generation?id=${id}`, { headers: { authorization: `Bearer ${MANAGER}` } });
    return response.status === 200 ? generation.parse(await response.json()).data : null;
  });
}

const checks: { [Kind in Ending['kind']]: (got: Received, one: Case, ending: Extract<Ending, { kind: Kind }>) => Promise<void> } = {
  async fallback(got, { row, second }) {
    expect(got.status).toBe(200);
    const { cost, ...said } = outcomeOf(got);
    expect(said).toEqual({ text: TEXT, reasoning: '', finish: 'stop', provider: 'Second', error: null });
    expect(got.asked[1]).toBe(1);
    expect(second.aborts).toBe(0);
    const record = await recordOf(got.id);
    expect([cost, record.total_cost]).toEqual([FULL_COST, FULL_COST]);
    expect(record).toMatchObject({ provider_name: 'Second', finish_reason: 'stop' });
    // What was refused, or broke before any byte, is tried a second time.
    const tries = row.scenario.fault === 'hang-up' || row.isClosed ? ['First', 'First'] : ['First'];
    expect(record.provider_responses.map(({ provider_name: name, status }) => [name, status])).toEqual([
      ...tries.map((name) => [name, row.recorded ?? 502]),
      ['Second', 200],
    ]);
  },
  async refused(got, _, { status, type }) {
    const { error } = errorBody.parse(JSON.parse(got.text));
    expect([got.status, error.code, error.type, error.metadata]).toEqual([
      status,
      status,
      type,
      expect.objectContaining({ error_type: type, provider_name: 'First' }),
    ]);
    expect(got.asked[1]).toBe(0);
    const record = await recordOf(got.id);
    expect([record.total_cost, record.provider_responses.length]).toEqual([0, 1]);
  },
  async exhausted(got, _, { status, type }) {
    const { error } = errorBody.parse(JSON.parse(got.text));
    expect([got.status, error.code, error.type, error.metadata]).toEqual([
      status,
      status,
      type,
      expect.objectContaining({ error_type: type, provider_name: 'Second' }),
    ]);
    expect(got.asked).toEqual([1, 1]);
    const record = await recordOf(got.id);
    expect([record.total_cost, record.provider_responses.map(({ status: tried }) => tried)]).toEqual([0, [status, status]]);
  },
  async broken(got, _, { text, reasoning = '' }) {
    expect(got.status).toBe(200);
    const { cost: _cost, error, ...said } = outcomeOf(got);
    expect(said).toEqual({ text, reasoning, finish: 'error', provider: 'First' });
    expect(error).toBe(502);
    expect(got.asked).toEqual([1, 0]);
    // What was shown is billed, and no more than the whole.
    const record = await recordOf(got.id);
    expect(record).toMatchObject({ provider_name: 'First', finish_reason: 'error', provider_responses: [{ provider_name: 'First' }] });
    expect(record.tokens_completion).toBeGreaterThan(0);
    expect(record.total_cost).toBeGreaterThan(0);
    expect(record.total_cost).toBeLessThanOrEqual(FULL_COST);
  },
  async answer(got, { row }, { counted }) {
    expect(got.status).toBe(200);
    const { cost, ...said } = outcomeOf(got);
    expect(said).toEqual({ text: TEXT, reasoning: '', finish: 'stop', provider: 'First', error: null });
    expect(got.asked).toEqual([1, 0]);
    const record = await recordOf(got.id);
    expect(record.total_cost).toBe(cost);
    expect(record.provider_responses).toHaveLength(1);
    if (counted) expect(cost).toBe(FULL_COST);
    else expect([row.fault, cost !== null && cost > 0, record.native_tokens_completion]).toEqual([row.fault, true, null]);
  },
};

describe.each(DIALECTS)('behind a provider of the kind %s', (dialect) => {
  describe.each([
    { form: 'a stream', isStream: true },
    { form: 'a whole answer', isStream: false },
  ])('$form', ({ isStream }) => {
    it.each(FAULT_ROWS)('has one end, and one record with its cost, when the provider $fault', async (row) => {
      const one = cases.find((other) => other.dialect === dialect && other.row === row);
      const got = received.get(nameOf({ dialect, row }, isStream));
      if (one === undefined || got === undefined) throw new Error('it was not asked');
      expect(got.isComplete).toBe(true);
      const { ending } = row;
      await (checks[ending.kind] as (got: Received, one: Case, ending: Ending) => Promise<void>)(got, one, ending);
      expect((await recordOf(got.id)).streamed).toBe(isStream);
    });
  });
});

it('all calls together are billed once: one row each, their sum, and no reservation left', async () => {
  const { rows } = await router.database.query<{ generation_id: string; cost_nano: string }>('select generation_id, cost_nano from usage_ledger');
  expect(rows.map((row) => row.generation_id).sort()).toEqual([...ids].sort());
  const sum = rows.reduce((total, row) => total + Number(row.cost_nano), 0);
  const response = await fetch(`${router.url}/api/v1/key`, { headers: { authorization: `Bearer ${KEY}` } });
  const { data } = z.object({ data: z.looseObject({ usage: z.number() }) }).parse(await response.json());
  expect(Math.round(data.usage * 1e9)).toBe(sum);
  await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 0);
});
