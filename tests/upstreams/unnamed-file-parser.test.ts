import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataUrlOf, encryptedPdf, scannedPdf, textPdf } from '../../services/router-worker/pipeline/test-support/pdf-files.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { openAnthropicUpstream } from './anthropic-upstream.ts';
import { type EngineServer, openEngineServer } from './engine-server.ts';
import type { RecordingUpstream } from './loopback-upstream.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';

const INVOICE = dataUrlOf(textPdf(['Invoice 7 to Ada', '12 pencils']));
const HASH = /^[0-9a-f]{64}$/;
const HIDDEN = dataUrlOf(textPdf(['BEGIN PRIVATE KEY']));

let takesFiles: OpenAiUpstream;
let takesText: OpenAiUpstream;
/** Searches by itself, and is declared to take no files. */
let claude: RecordingUpstream;
let search: EngineServer;
let files: Server;
let filesUrl = '';
let worker: Awaited<ReturnType<typeof openPluginWorker>>;

const plugins = {
  moderation: { patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] },
};

beforeAll(async () => {
  takesFiles = await openOpenAiUpstream();
  takesText = await openOpenAiUpstream();
  claude = await openAnthropicUpstream();
  search = await openEngineServer('/search', () => ({ results: [{ url: 'https://one.example/', title: 'one', content: 'pencils are dear' }] }));
  files = createServer((request, response) => {
    const [type, body] = request.url === '/notes.txt' ? ['text/plain', 'hello'] : ['application/pdf', request.url === '/not.pdf' ? 'hello' : textPdf(['away'])];
    response.writeHead(200, { 'content-type': type as string }).end(body);
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  const address = files.address();
  filesUrl = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const prices = { prompt: '1', completion: '2' };
  const native = { provider: 'native', upstream_model: 'native', modalities: ['file'], prices };
  const text = { provider: 'text', upstream_model: 'text', modalities: [], prices };
  const searching = { provider: 'claude', upstream_model: 'claude', modalities: [], prices };
  worker = await openPluginWorker({
    providers: [
      { slug: 'native', name: 'Native', kind: 'openai-compatible', base_url: takesFiles.baseUrl },
      { slug: 'text', name: 'Text', kind: 'openai-compatible', base_url: takesText.baseUrl },
      { slug: 'claude', name: 'Claude', kind: 'anthropic', base_url: claude.baseUrl, api_key: '${A_KEY}' },
    ],
    environment: { A_KEY: 'sk-ant-loopback' },
    models: [
      { id: 'a/text', endpoints: [text] },
      { id: 'a/undeclared', endpoints: [{ ...text, modalities: undefined }] },
      { id: 'a/files', endpoints: [native] },
      // The endpoint that takes no files is the first of the configuration's order, and would be that of every order by price.
      { id: 'a/mixed', order: 'file', endpoints: [{ ...text, prices: { prompt: '0.1', completion: '0.1' } }, native] },
      { id: 'a/half', endpoints: [native, { ...text, modalities: undefined }] },
      { id: 'a/small', endpoints: [{ ...text, context_length: 100 }] },
      { id: 'a/searching', order: 'file', endpoints: [native, searching] },
    ],
    plugins: { ...plugins, web: { name: 'acme', url: search.url, price: '0.005' } },
    outboundAllowHosts: new Set([filesUrl]),
  });
});

afterAll(async () => {
  await worker.close();
  await Promise.all([takesFiles.close(), takesText.close(), claude.close(), search.close()]);
  await new Promise((resolve) => files.close(resolve));
});

beforeEach(() => {
  takesFiles.answer({ text: ['A file.'] });
  takesText.answer({ text: ['An ', 'invoice.'] });
  claude.answer({ text: ['Pencils.'] });
});

const file = (data: string) => ({ type: 'file' as const, file: { filename: 'invoice.pdf', file_data: data } });
const asking = (model: string, items: object[] = [file(INVOICE)], named?: ChatRequest['plugins']): Partial<ChatRequest> => ({
  model,
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...items] as ChatRequest['messages'][number]['content'] },
  ] as ChatRequest['messages'],
  ...(named !== undefined && { plugins: named }),
});
const contentAt = (upstream: OpenAiUpstream) => (upstream.requests.at(-1) as { body: { messages: { content: unknown }[] } }).body.messages.at(-1)?.content;
type Body = { choices?: { message: { content: string; annotations?: object[] } }[]; error?: object };
const annotationsIn = (body: unknown) => (body as Body).choices?.[0]?.message.annotations ?? [];
const tokensIn = ({ usage }: Record<string, unknown>) => (usage as { total_tokens: number }).total_tokens;
const READ = {
  type: 'file',
  file: { hash: expect.stringMatching(HASH) as string, name: 'invoice.pdf', content: [{ type: 'text', text: 'Invoice 7 to Ada\n12 pencils' }] },
};
const READ_TEXT = expect.stringMatching(/^<file name="invoice\.pdf" sha256="[0-9a-f]{64}">\nInvoice 7 to Ada\n12 pencils\n<\/file/) as string;

/** How many requests each has got while `act` ran. */
async function counted<T>(act: () => Promise<T>): Promise<{ result: T; native: number; text: number; searches: number }> {
  const before = [takesFiles.requests.length, takesText.requests.length, search.requests.length] as const;
  const result = await act();
  return { result, native: takesFiles.requests.length - before[0], text: takesText.requests.length - before[1], searches: search.requests.length - before[2] };
}

describe('router-facts 6.3: PDFs of a request that does not name the plugin', () => {
  it.each(['a/text', 'a/undeclared'])('DESIGN 8: are read for an endpoint that does not say that it takes files (%s)', async (model) => {
    const { status, body } = await worker.whole(asking(model));
    expect([status, body]).toMatchObject([200, { choices: [{ message: { content: 'An invoice.' } }] }]);
    expect(annotationsIn(body)).toEqual([READ]);
    expect(contentAt(takesText)).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'text', text: READ_TEXT },
    ]);
  });

  it('are stated in a stream once, behind the text', async () => {
    const chunks = await worker.stream(asking('a/text'));
    const deltas = chunks.flatMap(({ choices }) => (choices as { delta: { content?: string; annotations?: unknown[] } }[]).map(({ delta }) => delta));
    expect(deltas.flatMap(({ annotations = [] }) => annotations)).toEqual([READ]);
    expect(deltas.map(({ content = '' }) => content).join('')).toBe('An invoice.');
  });

  it('cost what a request costs that names it', async () => {
    const named = await worker.whole(asking('a/text', [file(INVOICE)], [{ id: 'file-parser' }]));
    const { costNano } = await worker.recordOfLast();
    const { body } = await worker.whole(asking('a/text'));
    expect([body.usage, (await worker.recordOfLast()).costNano]).toEqual([named.body.usage, costNano]);
    expect(costNano).toBeGreaterThan(0);
  });

  it('are left to an endpoint that takes files', async () => {
    const { body } = await worker.whole(asking('a/files'));
    expect([contentAt(takesFiles), annotationsIn(body)]).toEqual([[{ type: 'text', text: 'What is this?' }, file(INVOICE)], []]);
  });

  it('are refused by an endpoint that takes none where the request switches the plugin off', async () => {
    const { result, text } = await counted(() => worker.whole(asking('a/text', undefined, [{ id: 'file-parser', enabled: false }])));
    expect([result.status, result.body, text]).toMatchObject([503, { error: {} }, 0]);
  });

  it('are said to have no text where they have none, and refused by their path where they can not be read', async () => {
    await worker.whole(asking('a/text', [file(dataUrlOf(scannedPdf()))]));
    expect(JSON.stringify(contentAt(takesText))).toContain('has no text that could be read');
    const { result, text } = await counted(() => worker.whole(asking('a/text', [file(dataUrlOf(encryptedPdf()))])));
    expect([result.status, result.body.error, text]).toMatchObject([400, { param: 'messages[0].content[1].file.file_data' }, 0]);
    const many = await worker.whole(
      asking(
        'a/text',
        Array.from({ length: 17 }, () => file(INVOICE)),
      ),
    );
    expect([many.status, many.body.error]).toMatchObject([400, { param: 'messages' }]);
  });

  it('are read before moderation, which sees the text', async () => {
    const { status, body } = await worker.whole(asking('a/text', [file(HIDDEN)], [{ id: 'moderation' }]));
    expect([status, body]).toMatchObject([403, { error: { metadata: { reasons: ['secrets'] } } }]);
  });
});

describe('router-facts 6.3: what is no PDF', () => {
  const notes = { type: 'file', file: { file_data: 'data:text/plain;base64,aGk=' } };
  const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };

  it.each<[string, object]>([
    ['a file of another type', notes],
    ['a file that a provider has stored', { type: 'file', file: { file_id: 'file-1' } }],
    ['a recording', sound],
  ])('is refused as ever: %s, also beside a PDF', async (_, item) => {
    for (const items of [[item], [item, file(INVOICE)]]) {
      const { result, text } = await counted(() => worker.whole(asking('a/text', items)));
      expect([result.status, text]).toEqual([503, 0]);
    }
  });

  it('stays as it is at an address, unless the request names the plugin', async () => {
    for (const path of ['/notes.txt', '/not.pdf']) {
      const away = file(`http://${filesUrl}${path}`);
      expect((await worker.whole(asking('a/text', [away]))).status).toBe(503);
      await worker.whole(asking('a/undeclared', [away, file(INVOICE)]));
      expect(contentAt(takesText)).toEqual([{ type: 'text', text: 'What is this?' }, away, { type: 'text', text: READ_TEXT }]);
      expect((await worker.whole(asking('a/undeclared', [away], [{ id: 'file-parser' }]))).status).toBe(400);
    }
    await worker.whole(asking('a/text', [file(`http://${filesUrl}/away.pdf`)]));
    expect(JSON.stringify(contentAt(takesText))).toContain('away');
  });
});

describe.each<[string, ChatRequest['plugins']]>([
  ['that does not name the plugin', undefined],
  ['that names it without an engine', [{ id: 'file-parser' }]],
])('router-facts 6.3: a request %s, with an endpoint that takes files and one that does not', (_, named) => {
  const mixed = (more: ChatRequest['plugins'] = []) =>
    asking('a/mixed', undefined, named === undefined && more.length === 0 ? undefined : [...(named ?? []), ...more]);

  it('goes to the one that takes them, with the file', async () => {
    const { result, native, text } = await counted(() => worker.whole(mixed()));
    expect([result.status, native, text, annotationsIn(result.body)]).toEqual([200, 1, 0, []]);
    expect(contentAt(takesFiles)).toEqual([{ type: 'text', text: 'What is this?' }, file(INVOICE)]);
  });

  it('DESIGN 8: falls back to the other, with the text, and is billed at its prices', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const { result, native, text } = await counted(() => worker.whole(mixed()));
    expect([result.status, native, text, annotationsIn(result.body)]).toEqual([200, 1, 1, [READ]]);
    expect(contentAt(takesText)).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'text', text: READ_TEXT },
    ]);
    expect(result.body).toMatchObject({ provider: 'Text' });
    const record = await worker.recordOfLast();
    expect(record.costNano).toBe(100 * tokensIn(result.body));
    expect(record.decision).toMatchObject({ candidates: [{ endpoint: 'a/mixed@native' }, { endpoint: 'a/mixed@text' }] });
    expect(record.decision).not.toHaveProperty('excluded');
  });

  it('falls back in a stream, which states what was read', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const chunks = await worker.stream(mixed());
    expect(JSON.stringify(chunks)).toContain('An ');
    const deltas = chunks.flatMap(({ choices }) => (choices as { delta: { annotations?: unknown[] } }[]).map(({ delta }) => delta));
    expect(deltas.flatMap(({ annotations = [] }) => annotations)).toEqual([READ]);
  });

  it('falls back with one search, which is billed once', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const { result, searches } = await counted(() => worker.whole(mixed([{ id: 'web' }])));
    expect([result.status, searches]).toEqual([200, 1]);
    expect(annotationsIn(result.body)).toMatchObject([READ, { type: 'url_citation' }]);
    expect((await worker.recordOfLast()).costNano).toBe(100 * tokensIn(result.body) + 5_000_000);
  });

  it('keeps the first failure where the file can not be read, and where all have failed', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const unread = { ...mixed(), messages: asking('a/mixed', [file(dataUrlOf(encryptedPdf()))]).messages as ChatRequest['messages'] };
    const { result, native, text } = await counted(() => worker.whole(unread));
    expect([result.status, native, text]).toEqual([502, 1, 0]);
    takesText.answer({ refuse: { status: 500 } });
    const failed = await worker.whole(mixed());
    expect([failed.status, failed.body.error]).toMatchObject([502, { metadata: { provider_name: 'Text', previous_errors: [{}], file_annotations: [READ] } }]);
  });

  it('is not read where no endpoint is left that would get the text', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const { result, native } = await counted(() => worker.whole({ ...mixed(), provider: { only: ['native'] } }));
    expect([result.status, native]).toEqual([502, 1]);
    expect(JSON.stringify(result.body)).not.toContain('file_annotations');
  });
});

describe('router-facts 6.3: behind endpoints that take files', () => {
  const WEB: ChatRequest['plugins'] = [{ id: 'web' }];
  /** Failures of other tests count as an outage in every order but this. */
  const half = () => ({ ...asking('a/half'), provider: { order: ['native', 'text'] } });

  it.each<[string, NonNullable<ChatRequest['provider']>, number]>([
    ['no fallbacks', { allow_fallbacks: false }, 0],
    ['no fallbacks, in an order by price', { allow_fallbacks: false, sort: 'price' }, 0],
    ['no fallbacks, and an empty order', { allow_fallbacks: false, order: [] }, 0],
    ['those of an order without others', { allow_fallbacks: false, order: ['native'] }, 0],
    ['those of an order with others', { allow_fallbacks: false, order: ['native', 'text'] }, 1],
  ])('no endpoint is asked that the request does not admit: %s', async (_, provider, asked) => {
    takesFiles.answer({ refuse: { status: 500 } });
    const { result, native, text } = await counted(() => worker.whole({ ...asking('a/mixed'), provider }));
    expect([native, text]).toEqual([1, asked]);
    if (asked === 1) return expect([result.status, annotationsIn(result.body)]).toEqual([200, [READ]]);
    expect([result.status, result.body.error]).toMatchObject([502, { metadata: { provider_name: 'Native' } }]);
    expect(JSON.stringify(result.body)).not.toContain('file_annotations');
  });

  it('DESIGN 8: an endpoint that does not say that it takes files gets the text, and never the file', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const { result, native, text } = await counted(() => worker.whole(half()));
    expect([result.status, native, text, annotationsIn(result.body)]).toEqual([200, 1, 1, [READ]]);
    expect(contentAt(takesText)).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'text', text: READ_TEXT },
    ]);
    const { decision } = await worker.recordOfLast();
    expect(decision).toMatchObject({ candidates: [{ endpoint: 'a/half@native' }, { endpoint: 'a/half@text' }] });
  });

  it('is in the decision as excluded while they answer', async () => {
    const { native, text } = await counted(() => worker.whole(half()));
    expect([native, text]).toEqual([1, 0]);
    const { decision } = await worker.recordOfLast();
    expect(decision).toMatchObject({ candidates: [{ endpoint: 'a/half@native' }], excluded: [{ filter: 'modality', endpoints: ['a/half@text'] }] });
  });

  it('the search of the engine is billed once, also where an endpoint that searches by itself answers', async () => {
    takesFiles.answer({ refuse: { status: 500 } });
    const { result, native, searches } = await counted(() => worker.whole(asking('a/searching', undefined, WEB)));
    expect([result.status, native, searches]).toEqual([200, 1, 1]);
    expect(result.body).toMatchObject({ provider: 'Claude' });
    expect(annotationsIn(result.body)).toMatchObject([READ, { type: 'url_citation' }]);
    expect(claude.requests.at(-1)?.body).not.toHaveProperty('tools');
    const { costNano } = await worker.recordOfLast();
    const { prompt_tokens: prompt, completion_tokens: completion } = result.body.usage as Record<string, number>;
    expect(costNano).toBe(1_000 * (prompt ?? 0) + 2_000 * (completion ?? 0) + 5_000_000);
  });

  it('the text is read at once where they can not make the search that the request asks for', async () => {
    const native: ChatRequest['plugins'] = [{ id: 'web', engine: 'native' }];
    const { result, native: asked, searches } = await counted(() => worker.whole(asking('a/searching', undefined, native)));
    expect([result.status, asked, searches, annotationsIn(result.body)]).toEqual([200, 0, 0, [READ]]);
    expect(claude.requests.at(-1)?.body).toMatchObject({ tools: [{ name: 'web_search' }] });
    const broken = await worker.whole(asking('a/searching', [file(dataUrlOf(encryptedPdf()))], native));
    expect([broken.status, broken.body.error]).toMatchObject([400, { param: 'messages[0].content[1].file.file_data' }]);
  });

  it.each<[string, object, number]>([
    ['the files themselves', { status: 400, message: 'A maximum of 100 PDF pages may be provided' }, 1],
    ['the size', { status: 413 }, 1],
    ['the length', { status: 400, code: 'context_length_exceeded' }, 1],
    ['what is said', { status: 400, code: 'content_policy_violation' }, 0],
  ])('a refusal may be about %s', async (_, refuse, asked) => {
    takesFiles.answer({ refuse: refuse as { status: number } });
    const { result, native, text } = await counted(() => worker.whole(asking('a/mixed')));
    expect([native, text]).toEqual([1, asked]);
    expect(result.status === 200).toBe(asked === 1);
  });

  it('the decision lists no other where the text is too long for the only one that would be tried', async () => {
    takesFiles.answer({ refuse: { status: 400, code: 'content_policy_violation' } });
    const long = file(dataUrlOf(textPdf(Array.from({ length: 40 }, (_, at) => `Line ${at} of a long invoice with many words and numbers`))));
    const { result, native, text } = await counted(() => worker.whole({ ...asking('a/mixed', [long]), models: ['a/small'] }));
    expect([result.status, native, text]).toEqual([403, 1, 0]);
    expect(result.body).toMatchObject({ error: { metadata: { file_annotations: [{}] } } });
    expect((await worker.recordOfLast()).decision).toMatchObject({ candidates: [{ endpoint: 'a/mixed@native' }] });
  });
});

describe('the plugins of an account', () => {
  it('switch it off for requests that do not name it', async () => {
    const account = await openPluginWorker({
      providers: [{ slug: 'text', name: 'Text', kind: 'openai-compatible', base_url: takesText.baseUrl }],
      models: [{ id: 'a/text', endpoints: [{ provider: 'text', upstream_model: 'text', modalities: [] }] }],
      plugins: {},
      account: { plugins: [{ id: 'file-parser', enabled: false }] },
    });
    try {
      expect((await account.whole(asking('a/text'))).status).toBe(503);
      expect((await account.whole(asking('a/text', undefined, [{ id: 'file-parser' }]))).status).toBe(200);
    } finally {
      await account.close();
    }
  });
});
