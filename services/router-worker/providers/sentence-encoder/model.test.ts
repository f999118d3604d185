import type { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { recordedLog } from '../../test-support/recorded-log.ts';
import { openProviders } from '../registry.ts';
import { DIMENSIONS } from './adapter.ts';

const timeouts = { connectMs: 1, firstTokenMs: 1, idleMs: 1 };
const NEVER = new AbortController().signal;
const model = (provider: string) => ({ id: `${provider}/lite`, embeddings: { dimensions: DIMENSIONS }, endpoints: [{ provider, upstream_model: 'lite' }] });
const config = routerConfig.parse({
  providers: ['one', 'two'].map((slug) => ({ slug, kind: 'sentence-encoder' })),
  models: ['one', 'two'].map(model),
  keys: [{ id: 'k', key: '${KEY}' }],
});

const workers: Worker[] = [];
const onWorker = (worker: Worker) => void workers.push(worker);
beforeAll(() => void process.on('worker', onWorker));
afterAll(() => void process.off('worker', onWorker));

function likeness(a: Float32Array, b: Float32Array): number {
  const product = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
}

it('the packages of the model find what is meant, in one thread for all providers, which ends with the last of them', async () => {
  const { log, lines } = recordedLog();
  const open = (providers: typeof config.providers) =>
    openProviders({ config: { ...config, providers }, environment: {}, clock: systemClock, log, scriptedWordsPerSecond: 0 });
  const [first, second] = config.providers.map((provider) => open([provider]));
  const vectorsOf = async (providers: typeof first, slug: string, inputs: readonly string[]) => {
    const given = await providers?.adapters.get(slug)?.embed?.({ model: 'lite', inputs, dimensions: null, inputType: null, user: null, timeouts }, NEVER);
    if (given === undefined) throw new Error('there is no such provider');
    return given;
  };

  const texts = ['refund', 'I want my money back', 'Paris'];
  const { vectors, promptTokens } = await vectorsOf(first, 'one', texts);
  const [refund, money, paris] = vectors as [Float32Array, Float32Array, Float32Array];
  expect(vectors.map(({ length }) => length)).toEqual(texts.map(() => DIMENSIONS));
  expect(likeness(refund, money)).toBeGreaterThan(likeness(refund, paris) + 0.2);
  expect(promptTokens).toBeGreaterThan(texts.length);

  // Equal texts, another provider, and what is no word: of these any vector is right.
  const odd = ['', '\u{1F600}\u{1F600}', '\uD800'];
  const again = await vectorsOf(second, 'two', ['refund', ...odd]);
  expect(again.vectors[0]).toEqual(refund);
  expect(again.vectors.filter((vector) => vector.length === DIMENSIONS && vector.every(Number.isFinite))).toHaveLength(odd.length + 1);

  await first?.close();
  expect((await vectorsOf(second, 'two', ['refund'])).vectors).toEqual([refund]);
  expect(workers.map(({ threadId }) => threadId === -1)).toEqual([false]);
  await second?.close();
  expect(workers.map(({ threadId }) => threadId === -1)).toEqual([true]);
  expect(lines).toEqual([]);
});
