import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openWireUpstream, type WireUpstream } from './clients/wire-upstream.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';

/** The tables of the contract (router-api) below those of requests: each field has a row. */
const CONTRACT: Record<string, readonly string[]> = {
  response: ['id', 'choices', 'created', 'model', 'object', 'system_fingerprint', 'usage'],
  choice: ['finish_reason', 'index', 'message', 'reasoning_details', 'logprobs'],
  logprobs: ['content', 'refusal', 'token', 'logprob', 'bytes', 'top_logprobs'],
  'reasoning.summary': ['summary', 'id', 'index', 'format'],
  'reasoning.encrypted': ['data', 'id', 'index', 'format'],
  'reasoning.text': ['text', 'signature', 'id', 'index', 'format'],
  usage: ['completion_tokens', 'prompt_tokens', 'total_tokens', 'completion_tokens_details', 'prompt_tokens_details'],
  completion_tokens_details: ['reasoning_tokens', 'audio_tokens', 'accepted_prediction_tokens', 'rejected_prediction_tokens'],
  prompt_tokens_details: ['cached_tokens', 'audio_tokens', 'video_tokens'],
};

interface Row {
  table: string;
  field: string;
  /** Of the upstream: fields of its chunk, of the choice, or of the usage. */
  said: Said;
  /** In the whole answer, by path; undefined: absent. */
  path: string;
  value: unknown;
  /** What an upstream sends that breaks the contract, and what becomes of it. */
  odd?: { said: Said; value: unknown };
}

interface Said {
  chunk?: object;
  choice?: object;
  delta?: object;
  usage?: object | null;
  finish?: string;
}

const whole = (table: string, field: string, path: string, said: Said, value: unknown, odd?: Row['odd']): Row => ({
  table,
  field,
  path,
  said,
  value,
  ...(odd && { odd }),
});
const integer = expect.toSatisfy((value: unknown) => Number.isInteger(value), 'an integer');

const response: Row[] = [
  whole('response', 'id', 'id', {}, expect.stringMatching(/^gen-/), { said: { chunk: { id: 7 } }, value: expect.stringMatching(/^gen-/) }),
  whole('response', 'object', 'object', {}, 'chat.completion', { said: { chunk: { object: null } }, value: 'chat.completion' }),
  whole('response', 'created', 'created', {}, integer, { said: { chunk: { created: 1.5 } }, value: integer }),
  whole('response', 'model', 'model', {}, 'loop/back', { said: { chunk: { model: null } }, value: 'loop/back' }),
  whole('response', 'choices', 'choices.length', {}, 1, { said: { chunk: { choices: null } }, value: 1 }),
  whole('response', 'system_fingerprint', 'system_fingerprint', { chunk: { system_fingerprint: 'fp_1' } }, 'fp_1', {
    said: { chunk: { system_fingerprint: 7 } },
    value: null,
  }),
  whole('response', 'usage', 'usage.total_tokens', {}, 17, { said: { usage: null }, value: integer }),
];

const token = { token: 'Hi', logprob: -0.5, bytes: [72, 105], top_logprobs: [{ token: 'Ho', logprob: -1, bytes: null }] };

const choice: Row[] = [
  ...['stop', 'length', 'content_filter'].map((finish) => whole('choice', 'finish_reason', 'choices.0.finish_reason', { finish }, finish)),
  whole(
    'choice',
    'finish_reason',
    'choices.0.finish_reason',
    { delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'look', arguments: '{}' } }] } },
    'tool_calls',
    {
      said: { finish: 'eos' },
      value: 'stop',
    },
  ),
  whole('choice', 'index', 'choices.0.index', {}, 0, { said: { choice: { index: null } }, value: 0 }),
  whole(
    'choice',
    'message',
    'choices.0.message',
    {},
    { role: 'assistant', content: 'Hi', refusal: null },
    {
      said: { delta: { role: null, tool_calls: null, refusal: null } },
      value: { role: 'assistant', content: 'Hi', refusal: null },
    },
  ),
  whole(
    'choice',
    'reasoning_details',
    'choices.0.reasoning_details.length',
    { delta: { reasoning_details: [{ type: 'reasoning.text', text: 'a', index: 0 }] } },
    1,
    {
      said: { delta: { reasoning_details: null } },
      value: undefined,
    },
  ),
  whole(
    'choice',
    'logprobs',
    'choices.0.logprobs',
    { choice: { logprobs: { content: [token], refusal: null } } },
    { content: [token], refusal: null },
    {
      said: { choice: { logprobs: 'none' } },
      value: null,
    },
  ),
];

const logprob = (field: string, value: unknown, oddToken: object, oddValue: unknown) =>
  whole('logprobs', field, `choices.0.logprobs.content.0.${field}`, { choice: { logprobs: { content: [token], refusal: null } } }, value, {
    said: { choice: { logprobs: { content: [oddToken], refusal: null } } },
    value: oddValue,
  });
const { bytes: _bytes, top_logprobs: _top, ...bareToken } = token;
const logprobs: Row[] = [
  whole('logprobs', 'content', 'choices.0.logprobs.content.length', { choice: { logprobs: { content: [token], refusal: null } } }, 1, {
    said: { choice: { logprobs: { content: 'none' } } },
    value: undefined,
  }),
  whole('logprobs', 'refusal', 'choices.0.logprobs.refusal.length', { choice: { logprobs: { content: null, refusal: [token] } } }, 1),
  logprob('token', 'Hi', { ...token, token: 7 }, undefined),
  logprob('logprob', -0.5, { ...token, logprob: null }, undefined),
  logprob('bytes', [72, 105], bareToken, null),
  logprob('top_logprobs', token.top_logprobs, bareToken, []),
];

const detail = (type: string, field: string, value: unknown, odd: unknown, oddValue: unknown): Row => {
  const full = { type, id: 'rs_1', index: 2, format: 'anthropic-claude-v1', ...(type === 'reasoning.summary' && { summary: 's' }) };
  const content = { ...full, ...(type === 'reasoning.encrypted' && { data: 'd' }), ...(type === 'reasoning.text' && { text: 't', signature: 'x' }) };
  const said = (with_: object) => ({ delta: { reasoning_details: [{ ...content, ...with_ }] } });
  return whole(type, field, `choices.0.message.reasoning_details.0.${field}`, said({ [field]: value }), value, {
    said: said({ [field]: odd }),
    value: oddValue,
  });
};
const common = (type: string): Row[] => [
  detail(type, 'id', 'rs_9', null, undefined),
  detail(
    type,
    'index',
    3,
    null,
    expect.toSatisfy((value: unknown) => value === undefined || Number.isInteger(value), 'an integer or absent'),
  ),
  detail(type, 'format', 'google-gemini-v1', 'of-a-newer-release', 'of-a-newer-release'),
];
const details: Row[] = [
  detail('reasoning.summary', 'summary', 'in short', 7, undefined),
  ...common('reasoning.summary'),
  detail('reasoning.encrypted', 'data', 'c2VjcmV0', null, undefined),
  ...common('reasoning.encrypted'),
  detail('reasoning.text', 'text', 'let me see', null, undefined),
  detail('reasoning.text', 'signature', 'c2ln', null, undefined),
  ...common('reasoning.text'),
];

const USAGE = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };
const counted = (table: string, field: string, odd: unknown, oddValue: unknown): Row => {
  const said = (value: unknown) => ({ usage: { ...USAGE, [table]: { cached_tokens: 1, reasoning_tokens: 1, [field]: value } } });
  return whole(table, field, `usage.${table}.${field}`, said(2), 2, { said: said(odd), value: oddValue });
};
const usage: Row[] = [
  whole('usage', 'prompt_tokens', 'usage.prompt_tokens', {}, 12, { said: { usage: { ...USAGE, prompt_tokens: 12.4 } }, value: 12 }),
  whole('usage', 'completion_tokens', 'usage.completion_tokens', {}, 5, { said: { usage: { ...USAGE, completion_tokens: null } }, value: 0 }),
  whole('usage', 'total_tokens', 'usage.total_tokens', {}, 17, { said: { usage: { ...USAGE, total_tokens: 'many' } }, value: 17 }),
  whole(
    'usage',
    'completion_tokens_details',
    'usage.completion_tokens_details',
    {},
    { reasoning_tokens: 0 },
    {
      said: { usage: { ...USAGE, completion_tokens_details: null } },
      value: { reasoning_tokens: 0 },
    },
  ),
  whole(
    'usage',
    'prompt_tokens_details',
    'usage.prompt_tokens_details',
    {},
    { cached_tokens: 0 },
    {
      said: { usage: { ...USAGE, prompt_tokens_details: null } },
      value: { cached_tokens: 0 },
    },
  ),
  counted('completion_tokens_details', 'reasoning_tokens', null, 0),
  ...['audio_tokens', 'accepted_prediction_tokens', 'rejected_prediction_tokens'].map((field) => counted('completion_tokens_details', field, null, undefined)),
  counted('prompt_tokens_details', 'cached_tokens', null, 0),
  ...['audio_tokens', 'video_tokens'].map((field) => counted('prompt_tokens_details', field, null, undefined)),
];

const rows: readonly Row[] = [...response, ...choice, ...logprobs, ...details, ...usage];

let upstream: WireUpstream;
let router: RouterInProcess;

beforeAll(async () => {
  upstream = await openWireUpstream();
  const config = {
    providers: [{ slug: 'loopback', kind: 'openai-compatible', base_url: upstream.baseUrl }],
    models: [{ id: 'loop/back', endpoints: [{ provider: 'loopback', upstream_model: 'upstream-model' }] }],
    keys: [{ id: 'one', key: '${KEY_ONE}' }],
  };
  router = await openRouterInProcess({ config, variables: { KEY_ONE: 'sk-one' } });
});

afterAll(async () => {
  await router.close();
  await upstream.close();
});

function chunksOf({ chunk = {}, choice: ofChoice = {}, delta = {}, usage: counts = USAGE, finish = 'stop' }: Said): object[] {
  const { choices: _, ...ofChunk } = { choices: null, ...chunk };
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_763_700_000, model: 'upstream-model', ...ofChunk };
  const first = { ...head, choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] };
  const second = { ...head, choices: [{ index: 0, delta: { content: 'Hi', ...delta }, finish_reason: null, ...ofChoice }] };
  const third = { ...head, ...chunk, ...(!('choices' in chunk) && { choices: [] }) };
  const end = { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  return [first, second, third, end, ...(counts === null ? [] : [{ ...head, choices: [], usage: counts }])];
}

async function answerTo(said: Said, stream = false): Promise<{ status: number; text: string }> {
  upstream.replyWith({ chunks: chunksOf(said) });
  const answer = await fetch(`${router.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-one', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'loop/back', stream, messages: [{ role: 'user', content: 'hello' }] }),
  });
  return { status: answer.status, text: await answer.text() };
}

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner, step) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, step) : undefined), value);
}

describe('the tables of an answer', () => {
  it('have a row for every field of the contract', () => {
    for (const [table, fields] of Object.entries(CONTRACT)) {
      const named = rows.filter((row) => row.table === table).map(({ field }) => field);
      expect([table, [...new Set(named)].sort()]).toEqual([table, [...fields].sort()]);
    }
  });

  it.each(rows)('$table: $field is what the upstream said', async ({ said, path, value }) => {
    const { status, text } = await answerTo(said);
    expect([status, at(JSON.parse(text), path)]).toEqual([200, value]);
  });

  it.each(rows.filter(({ odd }) => odd !== undefined))('$table: $field keeps to the contract when the upstream does not', async ({ path, odd }) => {
    const { status, text } = await answerTo(odd?.said ?? {});
    expect([status, at(JSON.parse(text), path)]).toEqual([200, odd?.value]);
    // Streamed: nothing is null that clients refuse.
    const stream = await answerTo(odd?.said ?? {}, true);
    const lines = stream.text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
    expect(stream.text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    for (const line of lines) clientChunk.parse(line);
  });
});

const count = z.number().int();
/** As the strictest client reads a chunk (router-facts 0). */
const clientChunk = z.object({
  id: z.string(),
  object: z.literal('chat.completion.chunk'),
  created: count,
  model: z.string(),
  system_fingerprint: z.string().optional(),
  choices: z.array(
    z.object({
      index: count,
      finish_reason: z.string().nullable(),
      delta: z.object({
        role: z.literal('assistant').optional(),
        content: z.string().nullable().optional(),
        tool_calls: z.array(z.object({ index: count, id: z.string().optional(), function: z.object({ name: z.string().optional() }) })).optional(),
        reasoning_details: z.array(z.looseObject({ type: z.string(), index: count.optional() })).optional(),
      }),
    }),
  ),
  usage: z
    .object({
      prompt_tokens: count,
      completion_tokens: count,
      total_tokens: count,
      cost: z.number().optional(),
      prompt_tokens_details: z.object({ cached_tokens: count }).optional(),
      completion_tokens_details: z.object({ reasoning_tokens: count }).optional(),
    })
    .optional(),
});
