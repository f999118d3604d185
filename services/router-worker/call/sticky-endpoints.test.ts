import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { DeferredMessages, deferMessages } from '#shared/prompts/deferred-messages.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { type Answer, emptyAnswer } from '#shared/surfaces/answer.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { configuredProviders } from '../providers/registry.ts';
import { type Candidate, catalogueOf } from './candidates.ts';
import { type Conversation, conversationOf } from './conversation.ts';
import { Health } from './health/health.ts';
import { HealthExchange } from './health/health-exchange.ts';
import { StickyEndpoints } from './sticky-endpoints.ts';
import { chosenCandidates } from './test-support/chosen.ts';

const prices = { prompt: '1', completion: '2' };
const config = routerConfig.parse({
  providers: ['east', 'west', 'north'].map((slug) => ({ slug, kind: 'scripted' })),
  models: [
    {
      id: 'm/two',
      endpoints: [
        { provider: 'east', upstream_model: 'a', prices: { ...prices, cached_prompt: '0.1' } },
        { provider: 'west', upstream_model: 'a', prices: { ...prices, cached_prompt: '0.1' } },
        { provider: 'north', upstream_model: 'a', prices },
      ],
    },
    { id: 'm/one', endpoints: [{ provider: 'east', upstream_model: 'b', prices }] },
    { id: 'm/vectors', embeddings: {}, endpoints: ['east', 'west'].map((provider) => ({ provider, upstream_model: 'v' })) },
  ],
  keys: [{ id: 'k', key: '${KEY}' }],
});
const catalogue = catalogueOf(config, configuredProviders(config));

const begin: ChatRequest['messages'] = [
  { role: 'system', content: 'You are brief.' },
  { role: 'user', content: 'Hello' },
];
const callOf = (fields: Partial<RouterCall> = {}) => ({ keyId: 'k', reply: null, ...fields }) as RouterCall;
function conversation(request: Partial<ChatRequest> = {}, fields: Partial<RouterCall> = {}): Conversation | null {
  return conversationOf(callOf(fields), { model: 'm/two', messages: begin, ...request }, catalogue);
}
const of = (request: Partial<ChatRequest> = {}, fields: Partial<RouterCall> = {}) => conversation(request, fields) as Conversation;
const candidateAt = (provider: string) => chosenCandidates(config, { model: 'm/two', provider: { only: [provider] } })[0] as Candidate;
const [east, west, north] = [candidateAt('east'), candidateAt('west'), candidateAt('north')];

function answer(cachedTokens: number): Answer {
  return { ...emptyAnswer(false), usage: { promptTokens: 2_000, completionTokens: 1, cachedTokens, reasoningTokens: 0 } };
}

let nowMs = 0;
const clock = { nowMs: () => nowMs };
let stored: Cache;
let commands: string[] = [];
/** Absent: it answers. */
let fault: 'away' | 'slow' | null = null;
const cache = new Proxy({} as Cache, {
  get:
    (_, name: keyof Cache) =>
    async (...given: unknown[]) => {
      commands.push(name);
      if (fault === 'away') throw new SwitchyardError('service.unreachable', 'Redis did not answer');
      if (fault === 'slow') return new Promise(() => {});
      return (stored[name] as (...all: unknown[]) => unknown)(...given);
    },
});
beforeEach(() => {
  stored = memoryCache({ clock });
  fault = null;
  commands = [];
});
afterEach(() => stored.close());

function worker(shared: Cache | null = cache) {
  const health = new Health({ clock, log: silentLog, metrics: noMetrics });
  const sticky = new StickyEndpoints({ cache: shared, health, clock, log: silentLog });
  return { sticky, exchange: new HealthExchange({ cache: stored, health, clock, log: silentLog }) };
}

describe('a conversation', () => {
  it.each<[string, Partial<ChatRequest>, Partial<RouterCall>]>([
    ['states an order', { provider: { order: ['east'] } }, {}],
    ['states a sort', { provider: { sort: 'price' } }, {}],
    ['states a sort by the older field', { route: 'sort' }, {}],
    ['has one endpoint', { model: 'm/one' }, {}],
    ['names no known model', { model: 'unknown' }, {}],
    ['has vectors', { model: 'm/vectors' }, { embedding: {} as RouterCall['embedding'] }],
  ])('is none that %s', (_, request, fields) => {
    expect(conversation({ session_id: 's', ...request }, fields)).toBeNull();
  });

  it.each<[string, Conversation, Conversation, boolean]>([
    ['the session, whatever is said', of({ session_id: 's' }), of({ session_id: 's', messages: [] }), true],
    ['the session before a cache key', of({ session_id: 's', prompt_cache_key: 'x' }), of({ session_id: 's' }), true],
    ['the session of an actor', of({}, { reply: { sessionId: 's' } as RouterCall['reply'] }), of({ session_id: 's' }), true],
    ['another session', of({ session_id: 's' }), of({ session_id: 't' }), false],
    ['the cache key', of({ prompt_cache_key: 'x' }), of({ prompt_cache_key: 'x', messages: [] }), true],
    ['another kind with the same text', of({ prompt_cache_key: 's' }), of({ session_id: 's' }), false],
    ['its begin, however it goes on', of(), of({ messages: [...begin, { role: 'assistant', content: 'Hi' }, { role: 'user', content: 'Well' }] }), true],
    ['another instruction', of(), of({ messages: [{ role: 'system', content: 'Be long.' }, ...begin.slice(1)] }), false],
    ['another first message', of(), of({ messages: [...begin.slice(0, 1), { role: 'user', content: 'Hi' }] }), false],
    ['another API key', of({ session_id: 's' }), of({ session_id: 's' }, { keyId: 'other' }), false],
    ['another model first', of({ session_id: 's' }), of({ session_id: 's', model: 'm/one', models: ['m/two'] }), false],
  ])('is known by %s', (_, one, other, isSame) => {
    expect(one.key === other.key).toBe(isSame);
  });

  it('with a name is known without its messages, which may not be parsed yet', () => {
    for (const name of [{ session_id: 's' }, { prompt_cache_key: 'x' }]) {
      const deferred = new DeferredMessages(Buffer.from('not parsed'), { chars: 0, extraBytes: 0, contentChars: 0 });
      const request = deferMessages({ model: 'm/two', messages: begin, ...name }, deferred);
      expect(conversationOf(callOf(), request, catalogue)?.key).toBe(of(name).key);
    }
  });
});

describe('the endpoint of a conversation', () => {
  it('with a session is that of its last success, for all workers, for 10 min', async () => {
    const [one, two] = [worker(), worker()];
    const session = () => of({ session_id: 's' });
    expect(await two.sticky.of(session())).toBeNull();
    one.sticky.served(session(), east, answer(0));
    expect(await two.sticky.of(session())).toBe('m/two@east');
    nowMs += 400_000;
    two.sticky.served(session(), west, answer(0));
    nowMs += 400_000;
    expect([await one.sticky.of(session()), await two.sticky.of(session())]).toEqual(['m/two@west', 'm/two@west']);
    nowMs += 200_000;
    expect([await one.sticky.of(session()), await two.sticky.of(session())]).toEqual([null, null]);
  });

  it.each([
    ['nothing was read from a cache', 0, east, null],
    ['a cache was read, and that is cheaper', 1_024, east, 'm/two@east'],
    ['a cache was read at the same price', 1_024, north, null],
  ])('without a session is known when %s', async (_, cached, candidate, expected) => {
    const { sticky } = worker();
    sticky.served(of(), candidate, answer(cached));
    expect(await sticky.of(of())).toBe(expected);
  });

  it('without a session is read from the cache only when a worker has reported one for an endpoint of these models', async () => {
    const [one, two] = [worker(), worker()];
    for (let call = 0; call < 3; call += 1) expect(two.sticky.of(of())).toBeNull();
    expect(commands).toEqual([]);
    one.sticky.served(of(), east, answer(1_024));
    expect(two.sticky.of(of())).toBeNull();
    for (const { exchange } of [one, two, one, two]) await exchange.round();
    expect(await two.sticky.of(of())).toBe('m/two@east');
    expect(await two.sticky.of(of({ prompt_cache_key: 'x' }))).toBeNull();
    expect(commands).toEqual(['set', 'get', 'get']);
    nowMs += 600_000;
    for (const { exchange } of [one, two, one, two]) await exchange.round();
    expect(two.sticky.of(of())).toBeNull();
  });

  it('is what the worker knows itself while the cache is away or slow, which is waited for once a second', async () => {
    for (const how of ['away', 'slow'] as const) {
      const { sticky } = worker();
      sticky.served(of({ session_id: how }), east, answer(0));
      fault = how;
      commands = [];
      expect(await sticky.of(of({ session_id: how }))).toBe('m/two@east');
      expect(sticky.of(of({ session_id: 'unknown' }))).toBeNull();
      sticky.served(of({ session_id: 'more' }), west, answer(0));
      expect(commands).toEqual(['get']);
      fault = null;
      nowMs += 1_000;
      expect(await sticky.of(of({ session_id: 'unknown' }))).toBeNull();
      expect(commands).toEqual(['get', 'get']);
    }
  });

  it('is known without a cache to the worker alone', () => {
    const { sticky } = worker(null);
    sticky.served(of({ session_id: 's' }), east, answer(0));
    expect(sticky.of(of({ session_id: 's' }))).toBe('m/two@east');
    nowMs += 600_000;
    expect(sticky.of(of({ session_id: 's' }))).toBeNull();
  });

  it('is forgotten beyond 10,000 of a worker, in the cache too', async () => {
    const { sticky } = worker();
    for (let index = 0; index <= 10_000; index += 1) sticky.served(of({ session_id: `s${index}` }), east, answer(0));
    expect(await sticky.of(of({ session_id: 's0' }))).toBeNull();
    expect(await sticky.of(of({ session_id: 's1' }))).toBe('m/two@east');
    expect(commands.filter((name) => name === 'delete')).toHaveLength(1);
  });
});
