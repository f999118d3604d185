import { OpenRouter } from '@openrouter/sdk';
import { ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models';
import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { KEY } from '../services/router-gateway/test-support/harness.ts';
import { useGateway } from '../services/router-gateway/test-support/use-gateway.ts';
import { systemClock } from '../shared/clock.ts';
import { SwitchyardError } from '../shared/errors/switchyard-error.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { emptyAnswer } from '../shared/surfaces/answer.ts';
import { errorChunkOf } from '../shared/surfaces/chat-completions/error-chunk.ts';
import { ChunkWriter } from '../shared/surfaces/chat-completions/part-writer.ts';
import { errorBodyOf } from '../shared/surfaces/error-body.ts';

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

/** The client checks every answer with the schemas of its version, and throws when one does not fit. */
async function client(): Promise<OpenRouter> {
  const url = await gateway.opened.app.listen({ host: '127.0.0.1', port: 0 });
  return new OpenRouter({ apiKey: KEY, serverURL: `${url}/api/v1`, retryConfig: { strategy: 'none' } });
}

describe('the client of @openrouter/sdk 1.3', () => {
  it('reads the list of models', async () => {
    const { data, totalCount } = (await (await client()).models.list()).result;

    expect(totalCount).toBe(2);
    expect(data.map(({ id, architecture, supportedVoices }) => [id, architecture.tokenizer, supportedVoices])).toEqual([
      ['acme/large', 'Other', null],
      ['acme/small', 'Other', null],
    ]);
  });

  it('reads the endpoints of a model, also without a known context length', async () => {
    const { endpoints } = await client();

    const [large, small] = [await endpoints.list({ author: 'acme', slug: 'large' }), await endpoints.list({ author: 'acme', slug: 'small' })];

    expect(large.data.endpoints.map(({ contextLength }) => contextLength)).toEqual([8_000, 16_000]);
    expect(large.data.endpoints[0]?.supportsToolChoice).toEqual({ none: false, auto: false, required: false, function: false });
    expect(small.data.endpoints.map(({ contextLength, supportsToolChoice }) => [contextLength, supportsToolChoice.auto])).toEqual([[0, true]]);
  });

  it('reads the last chunk of a stream whose provider failed, with all fields of the error', () => {
    const error = new SwitchyardError('router.provider_misconfigured', 'East: no', { details: { status: 401, raw: { message: 'no' }, providerCode: 'bad' } });
    const chunk = errorChunkOf(errorBodyOf(error, { providerName: 'East', previousErrors: [] }), { id: 'gen-1', created: 1, model: 'a/b', provider: 'East' });

    expect(ChatStreamChunk$inboundSchema.safeParse(chunk).error).toBeUndefined();
  });

  it('reads signed and encrypted reasoning, sources and images in chunks', () => {
    const block = { index: 0, id: null, format: 'anthropic-claude-v1' };
    const events = new ChunkWriter({ id: 'gen-1', created: 1, model: 'a/b', provider: 'East' }, emptyAnswer()).parts([
      { type: 'reasoning-delta', text: 'hm', block },
      { type: 'reasoning-signature', signature: 's', block },
      { type: 'reasoning-summary-delta', text: 'short', block: { ...block, id: 'rs_1' } },
      { type: 'reasoning-encrypted', data: 'x', block: { ...block, id: 'rs_1' } },
      { type: 'annotation', annotation: { type: 'url_citation', url_citation: { url: 'https://a.test', title: 'A', start_index: 0, end_index: 1 } } },
      { type: 'image', url: 'data:image/png;base64,AAAA' },
    ]);

    for (const event of events.split('\n\n').filter(Boolean))
      expect(ChatStreamChunk$inboundSchema.safeParse(JSON.parse(event.slice('data: '.length))).error).toBeUndefined();
  });
});
