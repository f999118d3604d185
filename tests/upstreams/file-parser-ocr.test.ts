import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { dataUrlOf, scannedPdf, textPdf } from '../../services/router-worker/pipeline/test-support/pdf-files.ts';
import { type EngineFault, type EngineServer, openEngineServer } from './engine-server.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';

const WAIT = { timeout: 60_000, interval: 5 };
const SCANNED = dataUrlOf(scannedPdf());
/** The engine's answer to it has no pages. */
const UNREAD = dataUrlOf(textPdf(['two']));
let pages: unknown[] = [];
let engine: EngineServer;
let upstream: OpenAiUpstream;
let worker: Awaited<ReturnType<typeof openPluginWorker>>;

beforeAll(async () => {
  engine = await openEngineServer('/v1/ocr', (body) => (JSON.stringify(body).includes(UNREAD) ? {} : { result: { pages } }));
  upstream = await openOpenAiUpstream();
  worker = await openPluginWorker({
    providers: [{ slug: 'first', name: 'First', kind: 'openai-compatible', base_url: upstream.baseUrl }],
    models: [
      { id: 'a/one', endpoints: [{ provider: 'first', upstream_model: 'one', modalities: [], prices: { prompt: '0', completion: '0' } }] },
      { id: 'a/sees', endpoints: [{ provider: 'first', upstream_model: 'two', modalities: ['image'], prices: { prompt: '0', completion: '0' } }] },
    ],
    plugins: {
      file_parser: {
        ocr: {
          name: 'acme-ocr',
          url: engine.url,
          api_key: '${ENGINE_KEY}',
          price: '0.002',
          timeout_ms: 5_000,
          request: { document: 'input.document_url', also: { model: 'ocr-1', input: { type: 'document_url' } } },
          response: { pages: 'result.pages', text: 'markdown', images: 'images', image: 'image_base64' },
        },
      },
    },
    environment: { ENGINE_KEY: 'sk-engine' },
  });
});

afterAll(async () => {
  await worker.close();
  await Promise.all([engine.close(), upstream.close()]);
});

beforeEach(() => {
  engine.fault = null;
  pages = [{ index: 0, markdown: '# In\u200bvoice 7' }, { index: 1, markdown: '12 pencils' }, { index: 2 }];
  upstream.answer({ text: ['It is an invoice.'] });
});

const file = (data: string, filename = 'scan.pdf') => ({ type: 'file' as const, file: { filename, file_data: data } });
const asking = (files: readonly ReturnType<typeof file>[] = [file(SCANNED)], engineName = 'acme-ocr') => ({
  model: 'a/one',
  messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'What is this?' }, ...files] }],
  plugins: [{ id: 'file-parser' as const, pdf: { engine: engineName } }],
});
const annotationsIn = (body: Record<string, unknown>) => (body.choices as { message: { annotations?: unknown[] } }[])[0]?.message.annotations ?? [];
const lastSent = () => JSON.stringify((upstream.requests.at(-1) as { body: unknown }).body);

describe('router-facts 6.3: an OCR engine', () => {
  it('gets the file in the fields that the configuration names, with the key', async () => {
    await worker.whole(asking());
    expect(engine.requests.at(-1)).toMatchObject({
      headers: { authorization: 'Bearer sk-engine', 'content-type': 'application/json' },
      body: { model: 'ocr-1', input: { type: 'document_url', document_url: SCANNED } },
    });
  });

  it('gives models the text of the pages, cleaned, and the caller an annotation with it', async () => {
    const { status, body } = await worker.whole(asking());
    expect([status, annotationsIn(body)]).toMatchObject([
      200,
      [{ type: 'file', file: { name: 'scan.pdf', content: [{ text: '# Invoice 7\n\n12 pencils' }] } }],
    ]);
    expect(lastSent()).toContain('# Invoice 7\\n\\n12 pencils');
  });

  it('gives models that take pictures those of the pages, at most eight, and the caller gets them back', async () => {
    const png = `iVBORw0KGgo${'A'.repeat(21)}`;
    const picture = (image_base64: unknown) => ({ id: 'img-0', image_base64 });
    const no = ['', 5, 'AAAA', 'data:text/html;base64,AAAA', `data:image/png;base64,${png}\u0000`, `iVBORw0KGgo${'A'.repeat(1_024 * 1_024)}`];
    pages = [
      { markdown: 'one', images: [...no.map(picture), picture(png), picture('data:image/jpeg;base64,/9j/AAAA')] },
      { markdown: 'two', images: 'none' },
      { markdown: 'three', images: Array.from({ length: 9 }, () => picture(png)) },
    ];
    const urls = [`data:image/png;base64,${png}`, 'data:image/jpeg;base64,/9j/AAAA', ...Array.from({ length: 6 }, () => `data:image/png;base64,${png}`)];
    const { body } = await worker.whole({ ...asking(), model: 'a/sees' });
    const images = urls.map((url) => ({ type: 'image_url', image_url: { url } }));
    expect(annotationsIn(body)).toMatchObject([{ file: { content: [{ type: 'text', text: 'one\n\ntwo\n\nthree' }, ...images] } }]);
    expect(lastSent().split('data:image/').length - 1).toBe(8);

    const plain = await worker.whole(asking());
    expect([plain.status, annotationsIn(plain.body)]).toMatchObject([200, [{ file: { content: [{}, ...images] } }]]);
    expect(lastSent()).not.toContain('data:image/');
  });

  it('costs the caller its price for each page, with the answer, and nothing when it is not read again', async () => {
    const { body } = await worker.whole(asking());
    expect(body).toMatchObject({ usage: { cost: 0.006 } });
    expect(await worker.recordOfLast()).toMatchObject({ costNano: 6_000_000 });
    const { length } = engine.requests;
    const request = asking();
    const again = {
      ...request,
      messages: [...request.messages, { role: 'assistant' as const, content: 'x', annotations: annotationsIn(body) as Record<string, unknown>[] }],
    };
    expect((await worker.whole(again)).body).toMatchObject({ usage: { cost: 0 } });
    expect(engine.requests).toHaveLength(length);
  });

  it('costs nothing when no provider answers', async () => {
    upstream.answer({ refuse: { status: 400 } });
    expect((await worker.whole(asking())).status).toBe(400);
    expect((await worker.recordOfLast()).costNano ?? 0).toBe(0);
  });

  it.each<EngineFault>(['silent', 'error', 'not-json', 'other-json', 'huge', 'redirect', 'hang-up', 'cut'])(
    'ends the call with 503 when it fails (%s), without its key, and asks no provider',
    async (fault) => {
      const asked = upstream.requests.length;
      engine.fault = fault;
      const { status, body } = await worker.whole(asking());
      expect([status, body.error]).toMatchObject([503, { type: 'provider_unavailable', message: expect.stringContaining("acme-ocr can't be used") }]);
      expect(JSON.stringify(body)).not.toContain('sk-engine');
      expect([upstream.requests.length, engine.followed]).toEqual([asked, 0]);
    },
  );

  it('ends the call with 400 and the path of the file when it refuses the file', async () => {
    engine.fault = 'refused';
    const { status, body } = await worker.whole(asking());
    expect([status, body.error]).toMatchObject([
      400,
      { param: 'messages[0].content[1].file.file_data', message: expect.stringContaining("can't be read by acme-ocr") },
    ]);
  });

  it('states what it had read when it fails at a later file', async () => {
    const { status, body } = await worker.whole(asking([file(SCANNED, 'one.pdf'), file(UNREAD, 'two.pdf')]));
    expect([status, body]).toMatchObject([503, { error: { metadata: { file_annotations: [{ type: 'file', file: { name: 'one.pdf' } }] } } }]);
  });

  it.each<[string, () => unknown[], RegExp]>([
    ['more than 500 pages', () => Array.from({ length: 501 }, () => ({ markdown: 'x' })), /more than 500 pages/],
    ['more text than may be sent', () => [{ markdown: 'x'.repeat(2 * 1_024 * 1_024 + 1) }], /more than 2097152 characters/],
  ])('ends the call with 413 when the file has %s', async (_, given, message) => {
    pages = given();
    const { status, body } = await worker.whole(asking());
    expect([status, body.error]).toMatchObject([413, { param: 'messages[0].content[1].file.file_data', message: expect.stringMatching(message) }]);
  });

  it('is asked no more when the call is aborted', async () => {
    engine.fault = 'silent';
    const { aborts, requests } = engine;
    const { length } = requests;
    const call = await worker.begin(asking());
    await vi.waitFor(() => expect(engine.requests.length).toBe(length + 1), WAIT);
    call.abort();
    expect(await call.ended()).toMatchObject({ kind: 'body', status: 408 });
    await vi.waitFor(() => expect(engine.aborts).toBe(aborts + 1), WAIT);
  });

  it('is refused by its place where the router does not have it', async () => {
    const { status, body } = await worker.whole(asking([], 'other-ocr'));
    expect([status, body.error]).toMatchObject([400, { param: 'plugins[0].pdf.engine' }]);
  });
});
