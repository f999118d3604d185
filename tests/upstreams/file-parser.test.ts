import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataUrlOf, encryptedPdf, scannedPdf, textPdf } from '../../services/router-worker/pipeline/test-support/pdf-files.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';

const INVOICE = textPdf(['Invoice 7 to Ada'], ['12 pencils']);
const TEXT = 'Invoice 7 to Ada\n12 pencils';
const HASH = /^[0-9a-f]{64}$/;
const prices = { prompt: '0', completion: '0' };

let upstream: OpenAiUpstream;
let files: Server;
let filesUrl = '';
let worker: Awaited<ReturnType<typeof openPluginWorker>>;

beforeAll(async () => {
  upstream = await openOpenAiUpstream();
  files = createServer((request, response) => {
    const type = request.url === '/page.html' ? 'text/html' : 'application/pdf';
    if (request.url === '/large.pdf') response.writeHead(200, { 'content-type': type, 'content-length': 32 * 1_024 * 1_024 + 1 }).flushHeaders();
    else response.writeHead(200, { 'content-type': type }).end(request.url === '/not.pdf' ? 'hello' : INVOICE);
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  const address = files.address();
  filesUrl = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const endpoint = { provider: 'first', prices };
  worker = await openPluginWorker({
    providers: [{ slug: 'first', name: 'First', kind: 'openai-compatible', base_url: upstream.baseUrl }],
    models: [
      { id: 'a/text', endpoints: [{ ...endpoint, upstream_model: 'text', modalities: [] }] },
      { id: 'a/files', endpoints: [{ ...endpoint, upstream_model: 'files', modalities: ['file'] }] },
      { id: 'a/undeclared', endpoints: [{ ...endpoint, upstream_model: 'undeclared' }] },
    ],
    plugins: { moderation: { patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] } },
    outboundAllowHosts: new Set([filesUrl]),
  });
});

afterAll(async () => {
  await worker.close();
  await upstream.close();
  await new Promise((resolve) => files.close(resolve));
});

beforeEach(() => upstream.answer({ text: ['It is ', 'an invoice.'] }));

const file = (data: string, more: object = {}) => ({ type: 'file' as const, file: { filename: 'invoice.pdf', file_data: data }, ...more });
const invoice = file(dataUrlOf(INVOICE));
type Item = Exclude<ChatRequest['messages'][number]['content'], string | null | undefined>[number];
const asking = (
  items: readonly Item[],
  { engine, model = 'a/text', plugins = [] }: { engine?: string; model?: string; plugins?: NonNullable<ChatRequest['plugins']> } = {},
) => ({
  model,
  messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'What is this?' }, ...items] }],
  plugins: [{ id: 'file-parser' as const, ...(engine !== undefined && { pdf: { engine } }) }, ...plugins],
});
const lastContent = () => {
  const { body } = upstream.requests.at(-1) as { body: { messages: { content: unknown }[] } };
  return body.messages.at(-1)?.content;
};
type Annotated = { choices: { message: { annotations?: { type: string; file: { hash: string; name: string; content: { text: string }[] } }[] } }[] };
const annotationsIn = (body: unknown) => (body as Annotated).choices[0]?.message.annotations ?? [];

describe('router-facts 6.3: pdf-text', () => {
  it('puts the text of a PDF in its place, between marks with its hash, and gives it back as an annotation', async () => {
    const { status, body } = await worker.whole(asking([invoice], { engine: 'pdf-text' }));
    expect([status, body]).toMatchObject([200, { choices: [{ message: { content: 'It is an invoice.' } }] }]);
    const [annotation] = annotationsIn(body);
    expect(annotation).toEqual({ type: 'file', file: { hash: expect.stringMatching(HASH), name: 'invoice.pdf', content: [{ type: 'text', text: TEXT }] } });
    const { hash } = annotation?.file ?? {};
    expect(lastContent()).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'text', text: `<file name="invoice.pdf" sha256="${hash}">\n${TEXT}\n</file sha256="${hash}">` },
    ]);
  });

  it('is the engine where no other is named and the endpoint does not say that it takes files', async () => {
    for (const model of ['a/text', 'a/undeclared']) {
      await worker.whole(asking([invoice], { model }));
      expect(JSON.stringify(lastContent())).toContain('12 pencils');
    }
  });

  it('states the annotation in a stream once, behind the text', async () => {
    const chunks = await worker.stream(asking([invoice]));
    const deltas = chunks.flatMap(({ choices }) => (choices as { delta: { content?: string; annotations?: unknown[] } }[]).map(({ delta }) => delta));
    expect(deltas.flatMap(({ annotations = [] }) => annotations)).toMatchObject([{ type: 'file', file: { name: 'invoice.pdf' } }]);
    expect(deltas.findIndex(({ annotations }) => annotations !== undefined)).toBeGreaterThan(deltas.findLastIndex(({ content = '' }) => content !== ''));
  });

  it('takes what an earlier answer has read by the hash of the file, and does not state it again', async () => {
    const { body } = await worker.whole(asking([invoice]));
    const [annotation] = annotationsIn(body);
    const before = { ...annotation, file: { ...annotation?.file, content: [{ type: 'text', text: 'as it was read before' }] } };
    const request = asking([invoice]);
    const [user] = request.messages;
    const { body: second } = await worker.whole({
      ...request,
      messages: [...request.messages, { role: 'assistant', content: 'It is an invoice.', annotations: [{ type: 'other' }, before] }, ...(user ? [user] : [])],
    });
    expect(JSON.stringify(lastContent())).toContain('as it was read before');
    expect(JSON.stringify(lastContent())).not.toContain('12 pencils');
    expect(annotationsIn(second)).toEqual([]);
  });

  it('reads a file at an address, and a file that is there twice once', async () => {
    const { status, body } = await worker.whole(asking([file(`http://${filesUrl}/invoice.pdf`), invoice]));
    expect([status, annotationsIn(body).length]).toEqual([200, 1]);
    expect(JSON.stringify(lastContent()).split('12 pencils')).toHaveLength(3);
  });

  it('says so where a file has no text', async () => {
    await worker.whole(asking([file(dataUrlOf(scannedPdf()))]));
    expect(JSON.stringify(lastContent())).toContain('has no text that could be read');
  });

  it('reads before moderation, which sees the text', async () => {
    const hidden = file(dataUrlOf(textPdf(['BEGIN PRIVATE KEY'])));
    const { status, body } = await worker.whole(asking([hidden], { plugins: [{ id: 'moderation' }] }));
    expect([status, body]).toMatchObject([403, { error: { metadata: { reasons: ['secrets'], file_annotations: [{ file: { name: 'invoice.pdf' } }] } } }]);
  });

  it('leaves other files as they are, and PDFs of a request that switches it off', async () => {
    const notes = { type: 'file' as const, file: { file_data: 'data:text/plain;base64,aGk=' } };
    const stored = { type: 'file' as const, file: { file_id: 'file-1' } };
    // The router reads PDFs of this request, although its endpoint takes files.
    await worker.whole({ ...asking([notes, stored], { model: 'a/files' }), plugins: [{ id: 'file-parser', pdf: { engine: 'pdf-text' } }] });
    expect(lastContent()).toEqual([{ type: 'text', text: 'What is this?' }, notes, stored]);
    await worker.whole({ ...asking([invoice], { model: 'a/files' }), plugins: [{ id: 'file-parser', enabled: false, pdf: { engine: 'pdf-text' } }] });
    expect(lastContent()).toEqual([{ type: 'text', text: 'What is this?' }, invoice]);
  });

  it.each<[string, () => string, number, RegExp]>([
    ['an encrypted file', () => dataUrlOf(encryptedPdf()), 400, /is encrypted/],
    ['a file that is none', () => dataUrlOf(Buffer.from('hello')), 400, /is not a PDF/],
    ['a file that is cut off', () => dataUrlOf(INVOICE.subarray(0, 60)), 400, /can be read/],
    ['an address of something else', () => `http://${filesUrl}/page.html`, 400, /can't be fetched/],
    ['an address of no PDF', () => `http://${filesUrl}/not.pdf`, 400, /is not a PDF/],
    ['an address that is not allowed', () => 'http://127.0.0.2:1/a.pdf', 400, /can't be fetched/],
    ['an address of more than 32 MiB', () => `http://${filesUrl}/large.pdf`, 413, /more than 33554432 bytes/],
  ])('refuses %s by its path, and asks no provider', async (_, data, status, message) => {
    const asked = upstream.requests.length;
    const result = await worker.whole(asking([file(data())]));
    expect([result.status, result.body.error]).toMatchObject([
      status,
      { param: 'messages[0].content[1].file.file_data', message: expect.stringMatching(message) },
    ]);
    expect(upstream.requests).toHaveLength(asked);
  });

  it('refuses more files than it reads', async () => {
    const { status, body } = await worker.whole(asking(Array.from({ length: 17 }, () => invoice)));
    expect([status, body.error]).toMatchObject([400, { param: 'messages', message: expect.stringContaining('more than 16 PDFs') }]);
  });
});

describe('router-facts 6.3: native', () => {
  it('sends the file as it is where it is asked for, and where the endpoint says that it takes files', async () => {
    for (const options of [{ model: 'a/files' }, { model: 'a/files', engine: 'native' }, { model: 'a/undeclared', engine: 'native' }]) {
      const { body } = await worker.whole(asking([invoice], options));
      expect([lastContent(), annotationsIn(body)]).toEqual([[{ type: 'text', text: 'What is this?' }, invoice], []]);
    }
  });

  it('is refused where no endpoint takes files', async () => {
    const { status, body } = await worker.whole(asking([invoice], { engine: 'native' }));
    expect([status, body.error]).toMatchObject([400, { param: 'plugins[0].pdf.engine' }]);
  });
});

describe('router-facts 6.3: an error behind the reading', () => {
  it('states what was read, in a whole answer and in a stream', async () => {
    upstream.answer({ refuse: { status: 400 } });
    const stated = [{ type: 'file', file: { hash: expect.stringMatching(HASH), name: 'invoice.pdf', content: [{ type: 'text', text: TEXT }] } }];
    const { status, body } = await worker.whole(asking([invoice]));
    expect([status, body]).toMatchObject([400, { error: { metadata: { file_annotations: stated } } }]);
    const chunks = await worker.stream(asking([invoice]));
    expect(chunks.at(-1)).toMatchObject({ error: { code: 400, metadata: { file_annotations: stated } } });
    const broken = file(dataUrlOf(encryptedPdf()));
    const second = await worker.whole(asking([invoice, broken]));
    expect([second.status, second.body]).toMatchObject([
      400,
      { error: { param: 'messages[0].content[2].file.file_data', metadata: { file_annotations: stated } } },
    ]);
  });
});
