import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GenerateContentResponse, GoogleGenAI } from '@google/genai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { adapterConformance } from '../../services/router-worker/providers/conformance.ts';
import { gemini } from '../../services/router-worker/providers/gemini/adapter.ts';
import type { GeminiAccess } from '../../services/router-worker/providers/gemini/credential.ts';
import { ChunkReader } from '../../services/router-worker/providers/gemini/to-parts.ts';
import { systemClock } from '../../shared/clock.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import type { GuardedGetter } from '../../shared/http/guarded-get.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { sseReader } from '../../shared/http/sse-reader.ts';
import type { Cache } from '../../shared/storage/cache.ts';
import { memoryCache } from '../../shared/storage/memory/memory-cache.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { openGeminiUpstream, understood } from './gemini-upstream.ts';
import type { RecordingUpstream } from './loopback-upstream.ts';

const MODEL = 'gemini-3-flash';
const TIMEOUTS = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
const FIXTURES = new URL('../../services/router-worker/providers/gemini/__fixtures__/', import.meta.url);

const loopback = {
  slug: 'loopback',
  name: 'Loopback',
  connectTimeoutMs: 60_000,
  clock: systemClock,
  safety: null,
  cache: null,
  outboundRules: { allowHosts: new Set<string>() },
} as const;
const openAdapter = ({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }) =>
  gemini({ ...loopback, baseUrl, access: { type: 'key', apiKey }, outbound: { ...openOutbound({}), openGetter: pictureDouble } });

/** Each picture's bytes are its address. */
const pictureDouble = (): GuardedGetter => ({ get: async ({ url }) => ({ mediaType: 'image/png', bytes: Buffer.from(url) }), close: async () => {} });

adapterConformance('the Gemini adapter', {
  openUpstream: openGeminiUpstream,
  openAdapter,
  understood,
  // The API takes bytes: those at the address.
  pictureAt: (url) => `data:image/png;base64,${Buffer.from(url).toString('base64')}`,
  model: MODEL,
  returnedReasoning: [{ text: null, signature: 'c2lnbmVk' }],
  countsCacheWrites: false,
  countsReasoning: true,
});

interface Options {
  access?: GeminiAccess;
  safety?: string | null;
  cache?: Cache | null;
  allowHosts?: ReadonlySet<string>;
}

async function open({ access = { type: 'key', apiKey: 'AIza-loopback-0123' }, safety = null, cache = null, allowHosts = new Set() }: Options = {}) {
  const upstream = await openGeminiUpstream();
  const adapter = gemini({ ...loopback, baseUrl: upstream.baseUrl, access, safety, cache, outboundRules: { allowHosts }, outbound: openOutbound({}) });
  onTestFinished(async () => {
    await adapter.close();
    await upstream.close();
  });
  const ask = async (fields: Partial<ChatRequest> = {}, model = MODEL) => {
    const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }], ...fields };
    const answer = emptyAnswer();
    await adapter.stream({ model, request, timeouts: TIMEOUTS }, new AbortController().signal, (parts) => {
      for (const part of parts) addPart(answer, part);
      return true;
    });
    return answer;
  };
  return { upstream, ask };
}

describe('requests to Gemini', () => {
  it('carry the key of AI Studio in a header', async () => {
    const { upstream, ask } = await open({ safety: 'BLOCK_NONE' });
    await ask();
    expect(upstream.requests[0]).toMatchObject({
      path: `/v1beta/models/${MODEL}:streamGenerateContent?alt=sse`,
      headers: { 'x-goog-api-key': 'AIza-loopback-0123' },
      body: { safetySettings: expect.any(Array) },
    });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('carry the token of Vertex AI from its file, also a new one, and errors never quote it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-vertex-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, 'ya29.first-token');
    let nowMs = Date.now();
    const clock = { nowMs: () => nowMs };
    const upstream = await openGeminiUpstream();
    const access = { type: 'vertex', project: 'p1', location: 'europe-west1', tokenFile } as const;
    const adapter = gemini({ ...loopback, clock, baseUrl: upstream.baseUrl, access, outbound: openOutbound({}) });
    onTestFinished(async () => {
      await adapter.close();
      await upstream.close();
    });
    const call = { model: MODEL, request: { messages: [{ role: 'user' as const, content: 'hi' }] }, timeouts: TIMEOUTS };
    const ask = () => adapter.stream(call, new AbortController().signal, () => true);
    await ask();
    writeFileSync(tokenFile, 'ya29.second-token');
    nowMs += 1_000;
    await ask();
    upstream.answer({ refuse: { status: 401, message: 'bad token ya29.second-token' } });
    await expect(ask()).rejects.toMatchObject({ code: 'router.provider_misconfigured', message: 'Loopback: bad token [redacted]' });

    expect(upstream.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer ya29.first-token',
      'Bearer ya29.second-token',
      'Bearer ya29.second-token',
    ]);
    expect(upstream.requests[0]?.path).toBe(`/v1/projects/p1/locations/europe-west1/publishers/google/models/${MODEL}:streamGenerateContent?alt=sse`);
  });

  it('fail without a token, and are not sent', async () => {
    const { upstream, ask } = await open({ access: { type: 'vertex', project: 'p', location: 'l', tokenFile: '/nowhere/token' } });
    await expect(ask()).rejects.toMatchObject({ code: 'router.provider_misconfigured' });
    expect(upstream.requests).toHaveLength(0);
  });
});

it.each([
  [400, undefined, 'no', 'router.provider_refused'],
  [400, 'API_KEY_INVALID', 'API key not valid. Please pass a valid API key.', 'router.provider_misconfigured'],
  [400, undefined, 'The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).', 'router.context_length'],
  [401, undefined, 'no', 'router.provider_misconfigured'],
  [403, 'SERVICE_DISABLED', 'no', 'router.provider_misconfigured'],
  [404, undefined, 'no', 'router.provider_misconfigured'],
  [429, undefined, 'no', 'router.provider_rate_limited'],
  [500, undefined, 'no', 'router.provider_unavailable'],
  [503, undefined, 'The model is overloaded.', 'router.provider_overloaded'],
  [504, undefined, 'no', 'router.provider_unavailable'],
] as const)('maps a %i with the reason %s (%s)', async (status, reason, message, code) => {
  const { upstream, ask } = await open();
  upstream.answer({ refuse: { status, message, ...(reason === undefined ? {} : { code: reason }) } });
  await expect(ask()).rejects.toMatchObject({ code, details: { raw: { message } } });
});

describe('what a call to Gemini needs from elsewhere', () => {
  const toolCalls = [{ id: 'fc-1', name: 'look', arguments: ['{}'] }];
  const toolCall = { id: 'fc-1', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
  const withoutReasoning: ChatRequest['messages'] = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [toolCall] },
    { role: 'tool', tool_call_id: 'fc-1', content: 'x' },
  ];

  it('is the signature that the client dropped, or the placeholder for a lost one', async () => {
    const cache = memoryCache({ clock: systemClock });
    const signatureSent = async (upstream: RecordingUpstream) => understood(upstream.requests.at(-1)?.body).turns[1]?.reasoning;
    const { upstream, ask } = await open({ cache });
    upstream.answer({ toolCalls, signature: 'c2ln', text: [], finish: 'tool_calls' }, {});
    await ask();
    await ask({ messages: withoutReasoning });
    expect(await signatureSent(upstream)).toEqual([{ text: null, signature: 'c2ln' }]);

    const other = await open({ cache: memoryCache({ clock: systemClock }) });
    await other.ask({ messages: withoutReasoning });
    expect(await signatureSent(other.upstream)).toEqual([{ text: null, signature: 'skip_thought_signature_validator' }]);
  });

  it('is a picture, which is fetched under the rules of outbound requests', async () => {
    const server = createServer((_, response) => void response.writeHead(200, { 'content-type': 'image/webp' }).end('webp')).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const content = [{ type: 'image_url' as const, image_url: { url: `http://${host}/a.webp?sig=secret` } }];
    const { upstream, ask } = await open({ allowHosts: new Set([host]) });
    await ask({ messages: [{ role: 'user', content }] });
    expect(understood(upstream.requests[0]?.body).turns[0]?.images).toEqual(['data:image/webp;base64,d2VicA==']);

    const refusing = await open();
    const refused = refusing.ask({ messages: [{ role: 'user', content }] });
    await expect(refused).rejects.toMatchObject({ code: 'router.provider_refused', details: { param: 'messages[0].content[0].image_url.url' } });
    await expect(refused).rejects.not.toThrow('secret');
    expect(refusing.upstream.requests).toHaveLength(0);
  });
});

describe('the SDK of Google', () => {
  const sdk = (baseUrl: string) => new GoogleGenAI({ apiKey: 'AIza-loopback', httpOptions: { baseUrl } });
  const params = { model: MODEL, contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };

  async function chunksOf(client: GoogleGenAI): Promise<GenerateContentResponse[]> {
    const chunks: GenerateContentResponse[] = [];
    for await (const chunk of await client.models.generateContentStream(params)) chunks.push(chunk);
    return chunks;
  }

  async function serve(bytes: Buffer): Promise<string> {
    const server = createServer((_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bytes)).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it.each(readdirSync(FIXTURES))('reads %s as the adapter does', async (name) => {
    const bytes = readFileSync(new URL(name, FIXTURES));
    expect(bytes.toString().split('\n')[0]).toMatch(/^: Written by hand from the types of npm @google\/genai 2\.32\.0/);
    // The comment is no event, and the SDK reads no comments.
    const chunks = await chunksOf(sdk(await serve(bytes.subarray(bytes.indexOf('data:')))));

    const answer = emptyAnswer();
    const sse = sseReader({ maxEventChars: 100_000 });
    for (const part of new ChunkReader(() => {}).readEvents([...sse.read(bytes), ...sse.end()])) addPart(answer, part);
    const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    expect(answer.text).toBe(parts.map(({ text, thought }) => (thought === true ? '' : (text ?? ''))).join(''));
    expect(answer.reasoning).toBe(parts.map(({ text, thought }) => (thought === true ? text : '')).join(''));
    expect(answer.toolCalls.map(({ function: { name: called, arguments: given } }) => ({ name: called, args: JSON.parse(given) }))).toEqual(
      parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [{ name: functionCall.name, args: functionCall.args ?? {} }])),
    );
    expect((answer.reasoningPieces ?? []).flatMap((piece) => (piece.type === 'encrypted' ? [piece.data] : []))).toEqual(
      parts.flatMap(({ thoughtSignature }) => thoughtSignature ?? []),
    );
    const last = chunks.at(-1);
    expect(answer.nativeReason).toBe(last?.candidates?.[0]?.finishReason ?? null);
    if (answer.usage !== null) expect(answer.usage.promptTokens + answer.usage.completionTokens).toBe(last?.usageMetadata?.totalTokenCount);
  });

  it('takes the loopback upstream for the API', async () => {
    const upstream = await openGeminiUpstream();
    onTestFinished(() => upstream.close());
    upstream.answer({
      reasoning: ['hm'],
      signature: 's',
      toolCalls: [{ id: 'a', name: 'look', arguments: ['{"at":', '1}'] }],
      finish: 'tool_calls',
      pieceBytes: 7,
    });
    const chunks = await chunksOf(sdk(upstream.baseUrl));

    expect(chunks.map(({ text }) => text ?? '').join('')).toBe('Hello there');
    expect(chunks.flatMap(({ functionCalls }) => functionCalls ?? [])).toEqual([{ id: 'a', name: 'look', args: { at: 1 } }]);
    expect(chunks.at(-1)).toMatchObject({ usageMetadata: { promptTokenCount: 12, thoughtsTokenCount: 1 } });
    expect(upstream.requests[0]?.path).toBe(`/v1beta/models/${MODEL}:streamGenerateContent?alt=sse`);
    upstream.answer({ refuse: { status: 404, message: 'no such model' } });
    await expect(chunksOf(sdk(upstream.baseUrl))).rejects.toMatchObject({ name: 'ApiError', status: 404 });
  });
});
