import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { BedrockRuntimeClient, ConverseStreamCommand, type ConverseStreamOutput } from '@aws-sdk/client-bedrock-runtime';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { bedrock } from '../../services/router-worker/providers/bedrock/adapter.ts';
import type { BedrockAccess } from '../../services/router-worker/providers/bedrock/credential.ts';
import { bedrockDialect } from '../../services/router-worker/providers/bedrock/dialect.ts';
import { ConverseReader } from '../../services/router-worker/providers/bedrock/to-parts.ts';
import { adapterConformance } from '../../services/router-worker/providers/conformance.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import type { GuardedGetter } from '../../shared/http/guarded-get.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { eventData, exceptionData, frameOf, openBedrockUpstream, understood } from './bedrock-upstream.ts';

const MODEL = 'eu.anthropic.claude-haiku-4-5-20251001-v1:0';
const PATH = '/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream';
const TIMEOUTS = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
const FIXTURES = new URL('../../services/router-worker/providers/bedrock/__fixtures__/', import.meta.url);
const REGION = 'eu-central-1';
const CREDENTIALS = { accessKeyId: 'AKIALOOPBACK0123', secretAccessKey: 'loopback+secret/0123456789', sessionToken: 'loopback/session+token==' };

const loopback = { slug: 'loopback', name: 'Loopback', connectTimeoutMs: 60_000, clock: systemClock, outboundRules: { allowHosts: new Set<string>() } };
/** Each picture's bytes are its address. */
const pictureDouble = (): GuardedGetter => ({ get: async ({ url }) => ({ mediaType: 'image/png', bytes: Buffer.from(url) }), close: async () => {} });

adapterConformance('the Bedrock adapter', {
  openUpstream: openBedrockUpstream,
  openAdapter: ({ baseUrl, apiKey }) =>
    bedrock({ ...loopback, baseUrl, access: { type: 'key', apiKey }, outbound: { ...openOutbound({}), openGetter: pictureDouble } }),
  understood,
  // The API takes bytes: those at the address.
  pictureAt: (url) => `data:image/png;base64,${Buffer.from(url).toString('base64')}`,
  model: MODEL,
  returnedReasoning: [
    { text: 'let me see', signature: 'c2lnbmVk' },
    { text: null, signature: 'c2VjcmV0' },
  ],
  countsCacheWrites: true,
  countsReasoning: false,
});

async function open({ access = { type: 'key', apiKey: 'loopback-key-0123' } as BedrockAccess, clock = systemClock as Clock } = {}) {
  const upstream = await openBedrockUpstream();
  const adapter = bedrock({ ...loopback, clock, baseUrl: upstream.baseUrl, access, outbound: openOutbound({}) });
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
  return { upstream, ask, adapter };
}

/** The vendor's signer takes a constructor of hashes, keyed or not. */
class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', typeof secret === 'string' ? secret : Buffer.from(secret as Uint8Array));
  }

  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {}
}

describe('requests to Bedrock', () => {
  it('carry an API key as a bearer, and are not signed', async () => {
    const { upstream, ask } = await open();
    await ask();
    expect(upstream.requests[0]).toMatchObject({
      path: PATH,
      headers: { authorization: 'Bearer loopback-key-0123', accept: 'application/vnd.amazon.eventstream', 'content-type': 'application/json' },
    });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('x-amz-date');
  });

  it.each([
    ['with a session token', CREDENTIALS],
    ['without one', { ...CREDENTIALS, sessionToken: null }],
  ])('are signed as the vendor’s signer signs them, %s', async (_, credentials) => {
    const nowMs = Date.parse('2026-11-28T12:34:56.789Z');
    const { upstream, ask } = await open({ access: { type: 'access-key', region: REGION, credentials }, clock: { nowMs: () => nowMs } });
    await ask({ messages: [{ role: 'user', content: 'Grüße' }] });
    const [request] = upstream.requests;
    const { sessionToken, ...key } = credentials;
    const signer = new SignatureV4({
      service: 'bedrock',
      region: REGION,
      credentials: { ...key, ...(sessionToken !== null && { sessionToken }) },
      sha256: Sha256,
      applyChecksum: false,
    });
    const { host } = new URL(upstream.baseUrl);
    const signed = await signer.sign(
      { method: 'POST', protocol: 'http:', hostname: host, path: PATH, query: {}, headers: { host }, body: JSON.stringify(request?.body) },
      { signingDate: new Date(nowMs) },
    );
    expect(request?.headers).toMatchObject({ 'x-amz-date': '20261128T123456Z', authorization: signed.headers.authorization });
    expect(request?.headers['x-amz-security-token']).toBe(sessionToken ?? undefined);
  });

  it('are signed with the credentials of a file, also new ones', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-bedrock-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'credentials');
    const write = (name: string) => writeFileSync(path, `[other]\naws_access_key_id = no\n[work]\naws_access_key_id = ${name}\naws_secret_access_key = s\n`);
    write('AKIAFIRST');
    let nowMs = Date.now();
    const { upstream, ask } = await open({ access: { type: 'file', region: REGION, path, profile: 'work' }, clock: { nowMs: () => nowMs } });
    await ask();
    write('AKIASECOND');
    nowMs += 1_000;
    await ask();
    const usedIn = ({ headers }: (typeof upstream.requests)[number]) => /Credential=(\w+)\//.exec(String(headers.authorization))?.[1];
    expect(upstream.requests.map(usedIn)).toEqual(['AKIAFIRST', 'AKIASECOND']);
  });

  it.each([
    ['api_key', { api_key: '${A}' }, /^Bearer value-of-A$/],
    [
      'credentials',
      { credentials: { access_key_id: '${A}', secret_access_key: '${B}', session_token: '${C}' } },
      /Credential=value-of-A\/\d{8}\/eu-central-1\/bedrock\//,
    ],
  ])('have the credential of their block (%s)', async (_, fields, authorization) => {
    const upstream = await openBedrockUpstream();
    const block = { slug: 'aws', kind: 'bedrock', region: REGION, ...fields };
    expect(bedrockDialect.configure(block)).toMatchObject({ address: { address: 'bedrock-runtime.eu-central-1.amazonaws.com', port: 443 } });
    const secret = (reference: string) => `value-of-${reference.slice(2, -1)}`;
    const settings = { ...loopback, secret, outbound: openOutbound({}), cache: null, log: silentLog, scriptedWordsPerSecond: 0 };
    const adapter = bedrockDialect.configure({ ...block, base_url: upstream.baseUrl }).open(settings);
    onTestFinished(async () => {
      await adapter.close();
      await upstream.close();
    });
    const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }] };
    await adapter.stream({ model: MODEL, request, timeouts: TIMEOUTS }, new AbortController().signal, () => true);
    expect(upstream.requests[0]?.headers.authorization).toMatch(authorization);
    expect(upstream.requests[0]?.headers['x-amz-security-token']).toBe('credentials' in fields ? 'value-of-C' : undefined);
  });

  it('fail without credentials, and are not sent', async () => {
    const { upstream, ask } = await open({ access: { type: 'file', region: REGION, path: '/nowhere/credentials', profile: 'default' } });
    await expect(ask()).rejects.toMatchObject({ code: 'router.provider_misconfigured' });
    expect(upstream.requests).toHaveLength(0);
  });

  it('are repeated as a refusal demands, and sent like that from then on', async () => {
    const { upstream, ask } = await open();
    const refusing = (message: string) => ({ refuse: { status: 400, message } });
    upstream.answer(
      refusing('The model returned the following errors: `temperature` is deprecated for this model.'),
      refusing("This model doesn't support the outputConfig.textFormat field."),
      {},
    );
    const schema = { type: 'object', properties: {} };
    await ask({ temperature: 0.5, response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } });
    await ask({ temperature: 0.7 });
    expect(upstream.requests).toHaveLength(4);
    expect(upstream.requests[2]?.body).toMatchObject({ toolConfig: { toolChoice: { tool: { name: 'json' } } } });
    for (const { body } of upstream.requests.slice(2)) expect(body).not.toHaveProperty('inferenceConfig.temperature');
    upstream.answer(refusing('`top_p` may not be set for this model'));
    const strict = ask({ top_p: 0.5, provider: { require_parameters: true } }, 'meta.llama3-3-70b-instruct-v1:0');
    await expect(strict).rejects.toMatchObject({ code: 'router.provider_refused' });
    expect(upstream.requests).toHaveLength(5);
  });

  it('with tools are for a whole answer where the model has no tools in a stream, also where no parameter may be dropped', async () => {
    const { upstream, ask } = await open();
    upstream.answer(
      { refuse: { status: 400, message: "This model doesn't support tool use in streaming mode." } },
      { isWhole: true, text: ['Good ', 'day'] },
      {},
    );
    const model = 'meta.llama3-3-70b-instruct-v1:0';
    const tools = [{ type: 'function' as const, function: { name: 'look' } }];
    const answer = await ask({ tools, provider: { require_parameters: true } }, model);
    expect(answer).toMatchObject({ text: 'Good day', nativeReason: 'end_turn' });
    await ask({}, model);
    const path = '/model/meta.llama3-3-70b-instruct-v1%3A0';
    expect(upstream.requests.map(({ path: asked, headers }) => [asked, headers.accept])).toEqual([
      [`${path}/converse-stream`, 'application/vnd.amazon.eventstream'],
      [`${path}/converse`, 'application/json'],
      [`${path}/converse-stream`, 'application/vnd.amazon.eventstream'],
    ]);
  });

  it('leave out cache points that a model refuses', async () => {
    const { upstream, ask } = await open();
    upstream.answer({ refuse: { status: 400, message: 'You invoked an unsupported model or your request did not allow prompt caching.' } }, {});
    await ask({ cache_control: { type: 'ephemeral' } });
    expect(upstream.requests.map(({ body }) => JSON.stringify(body).includes('cachePoint'))).toEqual([true, false]);
  });

  it('that are signed carry the numbers of calls as they are written', async () => {
    const { upstream, ask } = await open({ access: { type: 'access-key', region: REGION, credentials: CREDENTIALS } });
    const toolCall = { id: 'a', type: 'function' as const, function: { name: 'look', arguments: '{"id":12345678901234567890}' } };
    await ask({
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: [toolCall] },
        { role: 'tool', tool_call_id: 'a', content: 'x' },
      ],
    });
    expect(upstream.requests[0]?.headers.authorization).toContain('AWS4-HMAC-SHA256');
    expect(upstream.requests[0]?.text).toContain('"input":{"id":12345678901234567890}');
  });

  it('that are echoed show a picture by its address, since it is fetched later', async () => {
    const { adapter } = await open();
    const content = [{ type: 'image_url' as const, image_url: { url: 'https://files.test/a.png' } }];
    expect(adapter.upstreamBody({ model: MODEL, request: { messages: [{ role: 'user', content }] } })).toEqual({
      messages: [{ role: 'user', content: [{ image: { source: { url: 'https://files.test/a.png' } } }] }],
    });
  });
});

describe('errors of Bedrock', () => {
  it('never quote a credential, as that of a wrong signature does', async () => {
    const { upstream, ask } = await open({ access: { type: 'access-key', region: REGION, credentials: CREDENTIALS } });
    const all = Object.values(CREDENTIALS);
    const message = `The Canonical String for this request should have been 'POST\n/model\n\nx-amz-security-token:${all.join('\n')}' or ${encodeURIComponent(all.join(' '))}`;
    upstream.answer({ refuse: { status: 403, code: 'InvalidSignatureException', message } });
    const failure: unknown = await ask().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'router.provider_misconfigured', details: { providerCode: 'InvalidSignatureException' } });
    const shown = `${String(failure)} ${JSON.stringify(failure)} ${JSON.stringify((failure as { details: unknown }).details)}`;
    expect(shown).toContain('[redacted]');
    for (const secret of all) expect(shown).not.toContain(secret);
  });

  it.each([
    ['ThrottlingException', 'router.provider_rate_limited'],
    ['ValidationException', 'router.provider_refused'],
    ['ServiceUnavailableException', 'router.provider_overloaded'],
    ['InternalServerException', 'router.provider_unavailable'],
    ['ModelStreamErrorException', 'router.provider_unavailable'],
  ])('in a stream are those of a refusal (%s)', async (type, code) => {
    const { upstream, ask } = await open();
    upstream.answer({ fault: 'error-event', errorCode: type, after: 0 });
    await expect(ask()).rejects.toMatchObject({ code, details: { providerCode: type } });
  });
});

describe('the SDK of Amazon', () => {
  // It warns of the versions of Node that its later versions run on.
  beforeAll(() => void vi.stubEnv('AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED', 'true'));
  afterAll(() => void vi.unstubAllEnvs());

  /** Over HTTP/1.1, in place of its own transport. */
  const sdk = (send: (url: string, body: string, headers: Record<string, string>) => Promise<Response>) =>
    new BedrockRuntimeClient({
      region: REGION,
      endpoint: 'http://bedrock.invalid',
      token: { token: 'loopback-token' },
      authSchemePreference: ['httpBearerAuth'],
      maxAttempts: 1,
      requestHandler: {
        async handle({ path, body: sent, headers: { 'content-length': _, ...given } }: { path: string; body: string; headers: Record<string, string> }) {
          const { status, headers, body } = await send(path, sent, given);
          if (body === null) throw new TypeError('the response has no body');
          return { response: { statusCode: status, headers: Object.fromEntries(headers), body: Readable.fromWeb(body as never) } };
        },
      } as never,
    });
  const served = (bytes: Uint8Array<ArrayBuffer>) =>
    sdk(async () => new Response(bytes, { headers: { 'content-type': 'application/vnd.amazon.eventstream' } }));

  async function eventsOf(client: BedrockRuntimeClient): Promise<ConverseStreamOutput[]> {
    const { stream = [] } = await client.send(new ConverseStreamCommand({ modelId: MODEL, messages: [{ role: 'user', content: [{ text: 'hi' }] }] }));
    const events: ConverseStreamOutput[] = [];
    for await (const event of stream as AsyncIterable<ConverseStreamOutput>) events.push(event);
    return events;
  }

  function bytesOf(fixture: string): Uint8Array<ArrayBuffer> {
    const [provenance, ...lines] = readFileSync(new URL(fixture, FIXTURES), 'utf8').trimEnd().split('\n');
    expect(provenance).toMatch(/^# Written by hand from the types of npm @aws-sdk\/client-bedrock-runtime 3\.1162\.0/);
    const frames = lines.map((line) => {
      const at = line.indexOf(' ');
      const [type, body] = [line.slice(0, at), line.slice(at + 1)];
      if (!type.startsWith('exception:')) return frameOf(eventData(type, body));
      const name = type.slice('exception:'.length);
      return frameOf(exceptionData(`${name[0]?.toUpperCase()}${name.slice(1)}`, JSON.parse(body).message));
    });
    return new Uint8Array(Buffer.concat(frames));
  }

  it.each(readdirSync(FIXTURES).filter((name) => name !== 'throttled.frames'))('reads %s as the adapter does', async (name) => {
    const bytes = bytesOf(name);
    const events = await eventsOf(served(bytes));
    const answer = emptyAnswer();
    for (const part of new ConverseReader({ answerTool: null, signsReasoning: true }).readPiece(Buffer.from(bytes))) addPart(answer, part);

    const deltas = events.flatMap(({ contentBlockDelta }) => (contentBlockDelta === undefined ? [] : [contentBlockDelta]));
    expect(answer.text).toBe(deltas.map(({ delta }) => delta?.text ?? '').join(''));
    expect(answer.reasoning ?? '').toBe(deltas.map(({ delta }) => delta?.reasoningContent?.text ?? '').join(''));
    const signatures = deltas.flatMap(({ delta }) => delta?.reasoningContent?.signature ?? []);
    const redacted = Buffer.concat(deltas.flatMap(({ delta }) => delta?.reasoningContent?.redactedContent ?? [])).toString('base64');
    expect(answer.reasoningPieces ?? []).toMatchObject([...signatures.map((signature) => ({ signature })), ...(redacted === '' ? [] : [{ data: redacted }])]);
    const calls = events.flatMap(({ contentBlockStart: begun }) => (begun?.start?.toolUse ? [{ ...begun.start.toolUse, at: begun.contentBlockIndex }] : []));
    expect(answer.toolCalls.map(({ id, function: { name: called, arguments: text } }) => ({ id, called, text }))).toEqual(
      calls.map(({ toolUseId: id, name: called, at }) => ({
        id,
        called,
        text: deltas.flatMap(({ contentBlockIndex, delta }) => (contentBlockIndex === at ? (delta?.toolUse?.input ?? []) : [])).join('') || '{}',
      })),
    );
    expect(answer.nativeReason).toBe(events.find(({ messageStop }) => messageStop !== undefined)?.messageStop?.stopReason);
    const usage = events.at(-1)?.metadata?.usage;
    expect((answer.usage?.promptTokens ?? 0) + (answer.usage?.completionTokens ?? 0)).toBe(usage?.totalTokens);
  });

  it('reads the exception of a broken answer', async () => {
    await expect(eventsOf(served(bytesOf('throttled.frames')))).rejects.toMatchObject({ name: 'ThrottlingException' });
  });

  it('takes the loopback upstream for the API', async () => {
    const upstream = await openBedrockUpstream();
    onTestFinished(() => upstream.close());
    const client = sdk((path, body, headers) => fetch(`${upstream.baseUrl}${path}`, { method: 'POST', body, headers }));
    const toolCalls = [{ id: 'a', name: 'look', arguments: ['{"at":', '1}'] }];
    upstream.answer({ reasoning: ['hm'], signature: 's', text: ['Hello ', 'there'], toolCalls, finish: 'tool_calls', pieceBytes: 7 });

    const events = await eventsOf(client);

    expect(upstream.requests[0]?.path).toBe(PATH);
    expect(events.map(({ contentBlockDelta }) => contentBlockDelta?.delta?.text ?? '').join('')).toBe('Hello there');
    expect(events.at(-1)).toMatchObject({ metadata: { usage: { inputTokens: 5, cacheReadInputTokens: 3 } } });
    upstream.answer({ refuse: { status: 429 } });
    await expect(eventsOf(client)).rejects.toMatchObject({ name: 'ThrottlingException', $metadata: { httpStatusCode: 429 } });
    upstream.answer({ fault: 'error-event', errorCode: 503, after: 1 });
    await expect(eventsOf(client)).rejects.toMatchObject({ name: 'ServiceUnavailableException' });
  });
});
