import { expect, it } from 'vitest';
import { recordedLog } from '../../test-support/recorded-log.ts';
import type { VectorInput } from '../provider.ts';
import { embed } from '../scripted/embed.ts';
import { DIMENSIONS, sentenceEncoder } from './adapter.ts';
import { MAX_TEXT_CHARS } from './encodable-text.ts';

const timeouts = { connectMs: 1, firstTokenMs: 1, idleMs: 1 };
const NEVER = new AbortController().signal;
const callOf = (inputs: readonly VectorInput[]) => ({ model: 'm', inputs, dimensions: null, inputType: null, user: null, timeouts });

/** @param has whether its packages are installed */
function open(has: boolean) {
  const texts: string[] = [];
  const { log, lines } = recordedLog();
  const encoder = {
    async encode(text: string) {
      texts.push(text);
      return { vector: Float32Array.of(texts.length), tokens: 3 };
    },
  };
  const adapter = sentenceEncoder({ slug: 'local', name: 'Local', encoder, isInstalled: () => has, log });
  const vectorsOf = async (inputs: readonly VectorInput[], signal = NEVER) => adapter.embed?.(callOf(inputs), signal);
  return { adapter, vectorsOf, texts, lines };
}

it('encodes the inputs in their order, and counts the tokens of the model', async () => {
  const { vectorsOf, texts, lines } = open(true);

  expect(await vectorsOf(['one', [{ type: 'text', text: 'two' }]])).toEqual({ vectors: [Float32Array.of(1), Float32Array.of(2)], promptTokens: 6 });
  expect(texts).toEqual(['one', 'two']);
  expect(lines).toEqual([]);
});

it('encodes the beginning of a long text, also of one that its normal form makes longer, and something of an empty one', async () => {
  const { vectorsOf, texts } = open(true);
  const ligature = '\uFDFA';
  expect(ligature.normalize('NFKC').length).toBeGreaterThan(10);

  await vectorsOf(['ab'.repeat(MAX_TEXT_CHARS), ligature.repeat(MAX_TEXT_CHARS), '', 'ab']);

  expect(texts.map(({ length }) => length)).toEqual([MAX_TEXT_CHARS, MAX_TEXT_CHARS, 1, 2]);
});

it('without its packages gives vectors of the scripted model, as long as its own, and says so once', async () => {
  const { vectorsOf, texts, lines } = open(false);
  const inputs = ['I want my money back', 'refund'];

  const vectors = [await vectorsOf(inputs), await vectorsOf(inputs)];

  expect(vectors).toEqual([embed({ inputs, dimensions: DIMENSIONS }), embed({ inputs, dimensions: DIMENSIONS })]);
  expect(texts).toEqual([]);
  expect(lines).toMatchObject([
    { level: 'warn', fields: { provider: 'local' }, message: expect.stringContaining('@energetic-ai/embeddings is not installed') },
  ]);
});

it('an abort rejects with its reason, with its packages and without', async () => {
  const left = new Error('left');
  const { vectorsOf } = open(false);
  await expect(vectorsOf(['text'], AbortSignal.abort(left))).rejects.toBe(left);
  const encoder = { encode: async (_: string, signal: Pick<AbortSignal, 'reason'>) => Promise.reject(signal.reason) };
  const adapter = sentenceEncoder({ slug: 'local', name: 'Local', encoder, isInstalled: () => true, log: recordedLog().log });
  await expect(adapter.embed?.(callOf(['text']), AbortSignal.abort(left))).rejects.toBe(left);
});

it('does not chat, and says what its models need', async () => {
  const { adapter } = open(true);
  const chat = adapter.stream({ model: 'm', request: { messages: [] }, timeouts }, NEVER, () => true);

  await expect(chat).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining('"embeddings"') });
});
