import { describe, expect, it } from 'vitest';
import { routerCall } from '#bus/messages/router.ts';
import { actorCall } from './actor-call.ts';
import type { EffectRow } from './effect-row.ts';
import { modelRequest } from './model-request.ts';
import type { RenderDeps } from './render-deps.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const settings = { streaming: false, maxTokens: 10, modelKey: 'sha256:none' };
const effect: EffectRow = {
  ...{ partition: 1, id: 'effect-1', sessionId: 'ses_1', actorId: 'ses_1', createdAtMs: 1, kind: 'router-call' },
  inputs: { deadlineAtMs: 2, traceparent: null },
};

/** As it travels. */
function callUnder(providerOrder: readonly string[]) {
  const deps = { epochOf: () => 1, settings: { ...settings, providerOrder } } as unknown as RenderDeps;
  const call = actorCall(effect, { republished: false, step: { name: 'compose' }, want: 'none', models: ['a/one', 'b/two'], request: { messages } }, deps);
  return routerCall.parse(JSON.parse(JSON.stringify(call)));
}

describe('the model calls of turns and runs', () => {
  it('name the providers to try first, and allow others behind them', () => {
    expect(callUnder(['openai', 'deepinfra/turbo']).request.provider).toEqual({ order: ['openai', 'deepinfra/turbo'], allow_fallbacks: true });
  });

  it('state no preference without an order: the router keeps a conversation at its endpoint only then', () => {
    expect(callUnder([]).request).not.toHaveProperty('provider');
  });

  it('name their session, their model and its fallbacks', () => {
    expect(callUnder([]).request).toMatchObject({ session_id: 'ses_1', model: 'a/one', models: ['b/two'], messages });
  });
});

it('a call of no session names none', () => {
  const request = modelRequest({ messages }, { models: ['a/one'], sessionId: undefined }, { providerOrder: [] });

  expect(JSON.parse(JSON.stringify(request))).toEqual({ messages, model: 'a/one' });
});
