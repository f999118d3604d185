import { expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { ItemAbortController } from '#services/work/item-signal.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import type { ProviderAdapter } from '../providers/provider.ts';
import { configuredProviders } from '../providers/registry.ts';
import { type Choice, catalogueOf } from './candidates.ts';
import { executeCall } from './execute-call.ts';
import { Health } from './health/health.ts';
import { StickyEndpoints } from './sticky-endpoints.ts';
import { VectorBudget } from './vector-budget.ts';

const prices = { prompt: '1', completion: '2', cached_prompt: '0.1' };
const config = routerConfig.parse({
  providers: ['east', 'west'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [{ id: 'm/a', endpoints: ['east', 'west'].map((provider) => ({ provider, upstream_model: 'a', prices })) }],
  keys: [{ id: 'k', key: '${KEY}' }],
});

/** A worker whose providers read `cached` tokens of each prompt from a cache. */
function worker(cached = 0) {
  const health = new Health({ clock: systemClock, log: silentLog, metrics: noMetrics });
  const sticky = new StickyEndpoints({ cache: memoryCache({ clock: systemClock }), health, clock: systemClock, log: silentLog });
  const asked: string[] = [];
  const strategies: string[] = [];
  let down = '';
  const adapterOf = (slug: string): ProviderAdapter => ({
    slug,
    upstreamBody: () => ({}),
    async stream(_, _signal, onParts) {
      asked.push(slug);
      if (down === slug) throw new SwitchyardError('router.provider_unavailable', 'it is down');
      onParts([{ type: 'text-delta', text: 'hello' }]);
      onParts([{ type: 'usage', usage: { promptTokens: 2_000, completionTokens: 1, cachedTokens: cached, reasoningTokens: 0 } }]);
      onParts([{ type: 'finish', reason: 'stop', nativeReason: 'stop' }]);
    },
  });
  const deps = {
    adapters: new Map(['east', 'west'].map((slug) => [slug, adapterOf(slug)])),
    timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1 },
    catalogue: catalogueOf(config, configuredProviders(config)),
    ...{ vectorBudget: new VectorBudget(), health, sticky, log: silentLog, metrics: noMetrics, stages: [] },
  };
  const call = async (number: number, fields: Partial<ChatRequest> = {}) => {
    const request = { model: 'm/a', messages: [{ role: 'user' as const, content: 'hi' }], ...fields };
    const routerCall = { callId: `gen-${number}`, keyId: 'k', want: 'none', maxTokens: null, request, reply: null } as unknown as RouterCall;
    const result = await executeCall(
      {
        ...{ call: routerCall, surface: chatCompletions, attempt: 1, signal: new ItemAbortController(), mayPublish: () => true },
        ...{ tokens: { publish: () => {} }, framesAt: '', nowMs: 0, decided: ({ decision: { strategy } }: Choice) => void strategies.push(strategy) },
      },
      deps,
    );
    expect(result.type).toBe('completed');
  };
  const calls = async (fields: Partial<ChatRequest> = {}) => {
    asked.length = 0;
    for (let number = 0; number < 16; number += 1) await call(number, fields);
    return [...new Set(asked)].sort();
  };
  const fail = (slug: string) => {
    down = slug;
  };
  return { call, calls, asked, strategies, fail };
}

it('DESIGN 8: calls of one session go to one endpoint, and those without go where the draw leads', async () => {
  const { calls, strategies } = worker();
  expect(await calls()).toEqual(['east', 'west']);
  expect(strategies).not.toContain('sticky');
  expect(await calls({ session_id: 's' })).toHaveLength(1);
  expect(strategies.slice(-15)).toEqual(Array(15).fill('sticky'));
});

it('calls without a session go to the endpoint whose cache they have read', async () => {
  const { calls } = worker(1_024);
  expect(await calls()).toHaveLength(1);
  expect(await calls({ provider: { sort: 'price' } })).toEqual(['east']);
});

it('a session moves to the endpoint that answers when its own fails, and stays there', async () => {
  const { call, asked, fail } = worker();
  await call(0, { session_id: 's' });
  const [own = ''] = asked;
  fail(own);
  await call(1, { session_id: 's' });
  const other = asked.at(-1) ?? '';
  expect(asked).toEqual([own, own, other]);
  expect(other).not.toBe(own);
  fail('');
  for (let number = 2; number < 10; number += 1) await call(number, { session_id: 's' });
  expect(asked.slice(3)).toEqual(Array(8).fill(other));
});
