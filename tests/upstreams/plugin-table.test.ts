import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataUrlOf, textPdf } from '../../services/router-worker/pipeline/test-support/pdf-files.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { type EngineServer, openEngineServer } from './engine-server.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './openai-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';

type Plugin = NonNullable<ChatRequest['plugins']>[number];

/** The table `plugins` of the contract. */
const CONTRACT: Record<string, readonly string[]> = {
  moderation: ['id'],
  web: ['id', 'enabled', 'max_results', 'search_prompt', 'engine'],
  'file-parser': ['id', 'enabled', 'pdf'],
  'response-healing': ['id', 'enabled'],
};

/** What became of a call, as its caller and the provider see it. */
type Effect =
  /** The provider got results of the engine: how many, behind which words. */
  { searched: number; behind: RegExp } | { file: 'its text' | 'the text of the engine' } | { status: number; param?: string } | { answer: string };

interface Row {
  id: string;
  field: string;
  plugin: object;
  effect: Effect;
}

const DATED = /^The web was searched on/;
const BROKEN = '{"name": "Ada"';
const HEALED = '{"name": "Ada"}';

const rows: readonly Row[] = [
  { id: 'moderation', field: 'id', plugin: {}, effect: { status: 403 } },
  { id: 'web', field: 'id', plugin: {}, effect: { searched: 2, behind: DATED } },
  { id: 'web', field: 'enabled', plugin: { enabled: true }, effect: { searched: 2, behind: DATED } },
  { id: 'web', field: 'enabled', plugin: { enabled: false }, effect: { answer: BROKEN } },
  { id: 'web', field: 'max_results', plugin: { max_results: 1 }, effect: { searched: 1, behind: DATED } },
  { id: 'web', field: 'search_prompt', plugin: { search_prompt: 'Mind these:' }, effect: { searched: 2, behind: /^Mind these:/ } },
  { id: 'web', field: 'engine', plugin: { engine: 'acme' }, effect: { searched: 2, behind: DATED } },
  { id: 'web', field: 'engine', plugin: { engine: 'native' }, effect: { status: 400, param: 'plugins[0].engine' } },
  { id: 'file-parser', field: 'id', plugin: {}, effect: { file: 'its text' } },
  { id: 'file-parser', field: 'enabled', plugin: { enabled: true, pdf: { engine: 'pdf-text' } }, effect: { file: 'its text' } },
  { id: 'file-parser', field: 'enabled', plugin: { enabled: false, pdf: { engine: 'pdf-text' } }, effect: { status: 503 } },
  { id: 'file-parser', field: 'pdf', plugin: { pdf: { engine: 'pdf-text' } }, effect: { file: 'its text' } },
  { id: 'file-parser', field: 'pdf', plugin: { pdf: { engine: 'acme-ocr' } }, effect: { file: 'the text of the engine' } },
  { id: 'file-parser', field: 'pdf', plugin: { pdf: { engine: 'other-ocr' } }, effect: { status: 400, param: 'plugins[0].pdf.engine' } },
  { id: 'file-parser', field: 'pdf', plugin: { pdf: { engine: 'native' } }, effect: { status: 400, param: 'plugins[0].pdf.engine' } },
  { id: 'response-healing', field: 'id', plugin: {}, effect: { answer: HEALED } },
  { id: 'response-healing', field: 'enabled', plugin: { enabled: true }, effect: { answer: HEALED } },
  { id: 'response-healing', field: 'enabled', plugin: { enabled: false }, effect: { answer: BROKEN } },
];

const PDF = { type: 'file' as const, file: { filename: 'a.pdf', file_data: dataUrlOf(textPdf(['twelve pencils'])) } };
const TEXT = 'BEGIN PRIVATE KEY';

let search: EngineServer;
let ocr: EngineServer;
let upstream: OpenAiUpstream;
let worker: Awaited<ReturnType<typeof openPluginWorker>>;

beforeAll(async () => {
  const found = ['one', 'two', 'three'].map((name) => ({ url: `https://${name}.example/`, title: name, content: name }));
  search = await openEngineServer('/search', (body) => ({ results: found.slice(0, Math.min(2, (body as { max_results: number }).max_results)) }));
  ocr = await openEngineServer('/ocr', () => ({ pages: [{ markdown: 'a dozen pens' }] }));
  upstream = await openOpenAiUpstream();
  upstream.answer({ text: [BROKEN] });
  worker = await openPluginWorker({
    providers: [{ slug: 'first', name: 'First', kind: 'openai-compatible', base_url: upstream.baseUrl }],
    models: [{ id: 'a/one', endpoints: [{ provider: 'first', upstream_model: 'one', modalities: [], prices: { prompt: '0', completion: '0' } }] }],
    plugins: {
      moderation: { patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] },
      web: { name: 'acme', url: search.url },
      file_parser: { ocr: { name: 'acme-ocr', url: ocr.url, request: { document: 'document' }, response: { pages: 'pages', text: 'markdown' } } },
    },
  });
});
afterAll(async () => {
  await worker.close();
  await Promise.all([search.close(), ocr.close(), upstream.close()]);
});

describe('the table `plugins` of the contract', () => {
  it('has a row for each plugin and field', () => {
    const named = new Map(rows.map(({ id }) => [id, new Set<string>()]));
    for (const { id, field } of rows) named.get(id)?.add(field);
    expect(Object.fromEntries([...named].map(([id, fields]) => [id, [...fields]]))).toEqual(CONTRACT);
  });

  it.each(rows)('$id, $field: $plugin has its effect', async ({ id, plugin, effect }) => {
    const content = id === 'file-parser' ? [{ type: 'text' as const, text: TEXT }, PDF] : TEXT;
    const asked = upstream.requests.length;
    const { status, body } = await worker.whole({
      model: 'a/one',
      messages: [{ role: 'user', content }],
      response_format: { type: 'json_object' },
      plugins: [{ id, ...plugin } as Plugin],
    });
    const sent = upstream.requests.slice(asked).map((request) => (request.body as { messages: { role: string; content: string }[] }).messages);

    if ('status' in effect) {
      expect([status, sent]).toEqual([effect.status, []]);
      if (effect.param !== undefined) expect(body.error).toMatchObject({ param: effect.param });
      return;
    }
    expect([status, sent.length]).toEqual([200, 1]);
    const [messages = []] = sent;
    if ('answer' in effect) {
      expect(body).toMatchObject({ choices: [{ message: { content: effect.answer } }] });
      expect(messages).toEqual([{ role: 'user', content: TEXT }]);
    } else if ('searched' in effect) {
      const [system] = messages;
      expect(system).toMatchObject({ role: 'system', content: expect.stringMatching(effect.behind) });
      expect(JSON.parse(/^\[.*\]$/m.exec(system?.content ?? '')?.[0] ?? '')).toHaveLength(effect.searched);
    } else {
      const text = JSON.stringify(messages);
      const seen = text.includes('twelve pencils') ? 'its text' : text.includes('a dozen pens') ? 'the text of the engine' : 'as it is';
      expect(seen).toBe(effect.file);
    }
  });
});
