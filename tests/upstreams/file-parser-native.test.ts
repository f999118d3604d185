import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataUrlOf, textPdf } from '../../services/router-worker/pipeline/test-support/pdf-files.ts';
import { openAnthropicUpstream } from './anthropic-upstream.ts';
import { openBedrockUpstream } from './bedrock-upstream.ts';
import { openGeminiUpstream } from './gemini-upstream.ts';
import type { RecordingUpstream } from './loopback-upstream.ts';
import { openPluginWorker } from './plugin-worker.ts';
import { openResponsesUpstream } from './responses-upstream.ts';

const INVOICE = textPdf(['Invoice 7']);
const DATA = INVOICE.toString('base64');
const open = { anthropic: openAnthropicUpstream, bedrock: openBedrockUpstream, gemini: openGeminiUpstream, responses: openResponsesUpstream };
type Kind = keyof typeof open;
const kinds = Object.keys(open) as Kind[];

const upstreams = new Map<Kind, RecordingUpstream>();
let worker: Awaited<ReturnType<typeof openPluginWorker>>;

beforeAll(async () => {
  for (const kind of kinds) upstreams.set(kind, await open[kind]());
  const prices = { prompt: '0', completion: '0' };
  worker = await openPluginWorker({
    providers: kinds.map((kind) => ({ slug: kind, kind, base_url: upstreams.get(kind)?.baseUrl, api_key: '${A_KEY}' })),
    models: kinds.flatMap((kind) => [
      { id: `x/${kind}`, endpoints: [{ provider: kind, upstream_model: 'm', prices }] },
      { id: `x/${kind}-text`, endpoints: [{ provider: kind, upstream_model: 'm', modalities: ['image'], prices }] },
    ]),
    plugins: {},
    environment: { A_KEY: 'sk-a' },
  });
});

afterAll(async () => {
  await worker.close();
  for (const upstream of upstreams.values()) await upstream.close();
});

const asking = (model: string) => ({
  model,
  messages: [{ role: 'user' as const, content: [{ type: 'file' as const, file: { filename: 'invoice.pdf', file_data: dataUrlOf(INVOICE) } }] }],
  plugins: [{ id: 'file-parser' as const }],
});
const lastSent = (kind: Kind) => JSON.stringify(upstreams.get(kind)?.requests.at(-1));

describe('router-facts 6.3: endpoints whose dialect takes PDFs', () => {
  it.each<[Kind, object]>([
    ['anthropic', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: DATA }, title: 'invoice.pdf' }],
    ['bedrock', { document: { format: 'pdf', name: 'invoice', source: { bytes: DATA } } }],
    ['gemini', { inlineData: { mimeType: 'application/pdf', data: DATA } }],
    ['responses', { type: 'input_file', filename: 'invoice.pdf', file_data: dataUrlOf(INVOICE) }],
  ])('get them as they are (%s), where they say nothing else', async (kind, form) => {
    upstreams.get(kind)?.answer({ text: ['It is.'] });
    const { status } = await worker.whole(asking(`x/${kind}`));
    expect(status).toBe(200);
    expect(lastSent(kind)).toContain(JSON.stringify(form));
  });

  it.each(kinds)('get the text (%s), where they say that their model takes no files', async (kind) => {
    upstreams.get(kind)?.answer({ text: ['It is.'] });
    expect((await worker.whole(asking(`x/${kind}-text`))).status).toBe(200);
    expect(lastSent(kind)).toContain('Invoice 7');
    expect(lastSent(kind)).not.toContain(DATA);
  });
});
