import { describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { type ErrorCode, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { pipelineFor } from '../pipeline/pipeline.ts';
import { stages } from '../pipeline/stages.ts';
import type { ProviderAdapter } from '../providers/provider.ts';
import type { Candidate } from './candidates.ts';
import { Health } from './health/health.ts';
import { type CallOutcome, type CallPlan, runCall } from './run-call.ts';
import { chosenCandidates } from './test-support/chosen.ts';
import { VectorBudget } from './vector-budget.ts';

const say = (text: string): ProviderPart => ({ type: 'text-delta', text });
const finish: ProviderPart = { type: 'finish', reason: 'stop', nativeReason: 'stop' };
const failing = (code: ErrorCode, details: Record<string, unknown> = {}) => new SwitchyardError(code, `failed: ${code}`, { details });
const unavailable = () => failing('router.provider_unavailable');

/** What a provider does in an attempt: batches in order, an error, or `wait` until the abort. */
type Deed = readonly ProviderPart[] | Error | 'wait';

/** @param contexts context lengths of endpoints, by `model@provider` */
function configOf(endpoints: readonly string[], contexts: Record<string, number> = {}): RouterConfig {
  const split = endpoints.map((endpoint) => endpoint.split('@') as [string, string]);
  const models = [...new Set(split.map(([model]) => model))];
  return routerConfig.parse({
    providers: [...new Set(split.map(([, provider]) => provider))].map((slug) => ({ slug, kind: 'scripted' })),
    models: models.map((id) => ({
      id,
      endpoints: split
        .filter(([model]) => model === id)
        .map(([, provider]) => ({ provider, upstream_model: id, ...(contexts[`${id}@${provider}`] ? { context_length: contexts[`${id}@${provider}`] } : {}) })),
    })),
    keys: [{ id: 'k', key: '${KEY}' }],
  });
}

function candidatesOf(config: RouterConfig, request: Partial<ChatRequest> = {}): Candidate[] {
  return chosenCandidates(config, request);
}

interface Run {
  outcome: CallOutcome;
  /** `model@provider` in the order of attempts. */
  asked: string[];
  shown: string;
  logged: string[];
  /** Lines of the attempts metric, without its name. */
  attempts: string[];
}

interface RunOptions {
  abort?: AbortController;
  contexts?: Record<string, number>;
  abortOn?: string;
  request?: Partial<ChatRequest>;
  retainsAnswer?: boolean;
  maxTextChars?: number;
  /** Ids of endpoints that are tried after all others. */
  later?: string[];
}

/** Runs a call over scripted providers; one list of steps per attempt. */
async function run(
  script: Record<string, Deed[][]>,
  { abort = new AbortController(), contexts = {}, abortOn = '', request = {}, retainsAnswer = true, maxTextChars, later = [] }: RunOptions = {},
): Promise<Run> {
  const config = configOf(Object.keys(script), contexts);
  const tries = copyOf(script);
  const asked: string[] = [];
  const logged: string[] = [];
  let shown = '';
  const adapterFor = (slug: string): ProviderAdapter => ({
    slug,
    upstreamBody: () => ({}),
    async stream({ model }, signal, onParts) {
      const index = `${model}@${slug}`;
      asked.push(index);
      if (abortOn === index) abort.abort(failing('router.cancelled'));
      for (const deed of tries[index]?.shift() ?? [unavailable()]) {
        signal.throwIfAborted();
        if (deed instanceof Error) throw deed;
        if (deed === 'wait') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        else if (!onParts(deed)) return;
      }
    },
  });
  const note = (_: unknown, message: string) => void logged.push(message);
  const log: Log = { trace: note, debug: note, info: note, warn: note, error: (_, message) => void logged.push(`error: ${message}`) };
  const models = config.models.map(({ id }) => id);
  const all = candidatesOf(config, { models, ...request });
  const candidates = all.filter(({ id }) => !later.includes(id));
  const { parts: partTransforms } = pipelineFor({ messages: [], ...request }, stages);
  const observer = {
    retainsAnswer,
    ...(maxTextChars !== undefined && { maxTextChars }),
    begin: () => {},
    parts: (parts: readonly ProviderPart[]) => {
      for (const part of parts) if (part.type === 'text-delta' || part.type === 'reasoning-delta') shown += part.text;
      if (abortOn === 'shown') abort.abort(failing('router.cancelled'));
    },
  };
  const adapters = new Map(config.providers.map(({ slug }) => [slug, adapterFor(slug)]));
  const metrics = openMetrics();
  const health = new Health({ clock: systemClock, log: silentLog, metrics: noMetrics });
  const deps = { adapters, timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1 }, vectorBudget: new VectorBudget(), health, log, metrics };
  const more: CallPlan['more'] = async (remainingOf) => {
    const left = remainingOf(all.filter(({ id }) => later.includes(id)));
    return left.length === 0 ? null : { candidates: left, partTransforms };
  };
  const outcome = await runCall({ candidates, partTransforms, ...(later.length > 0 && { more }) }, observer, abort.signal, deps);
  const samples = (await metrics.text()).split('\n').filter((line) => line.startsWith('switchyard_upstream_attempts_total{'));
  const attempts = samples.map((line) => line.replace('switchyard_upstream_attempts_total', ''));
  return { outcome, asked, shown, logged, attempts };
}

function copyOf(script: Record<string, Deed[][]>): Record<string, Deed[][]> {
  return Object.fromEntries(Object.entries(script).map(([index, tries]) => [index, [...tries]]));
}

const well: Deed[] = [[say('hello')], [finish]];

describe('an answer that is not accumulated', () => {
  const logprobs = { content: [], refusal: null };
  const words: Deed[] = [[{ type: 'reasoning-delta', text: 'hm' }], [{ type: 'text-delta', text: 'hello', logprobs }], [{ type: 'refusal-delta', text: 'no' }]];

  it('is streamed, counted, and not stored', async () => {
    const { outcome, shown } = await run({ 'm/a@east': [[...words, [finish]]] }, { retainsAnswer: false });
    expect(shown).toBe('hmhello');
    const chars = { textChars: 5, reasoningChars: 2, refusalChars: 2 };
    expect(outcome).toMatchObject({ type: 'completed', answer: { text: '', reasoning: '', refusal: '', logprobs: null, ...chars } });
  });

  it.each(['text-delta', 'reasoning-delta', 'refusal-delta'] as const)('is committed once it has content as %s', async (type) => {
    const { outcome, asked } = await run({ 'm/a@east': [[[{ type, text: 'a' }], unavailable()]], 'm/a@west': [well] }, { retainsAnswer: false });
    expect(outcome).toMatchObject({ type: 'failed', partial: { text: '' } });
    expect(asked).toEqual(['m/a@east']);
  });
});

describe('fallback', () => {
  it.each(['router.provider_unavailable', 'router.provider_overloaded', 'router.provider_rate_limited', 'router.provider_misconfigured', 'internal'] as const)(
    'DESIGN 8: the next endpoint is called after %s, without a trace in the stream',
    async (code) => {
      const { outcome, asked, shown } = await run({ 'm/a@east': [[failing(code)]], 'm/a@west': [well] });
      expect(outcome).toMatchObject({ type: 'completed', candidate: { provider: { slug: 'west' } }, answer: { text: 'hello' } });
      expect({ asked, shown }).toEqual({ asked: ['m/a@east', 'm/a@west'], shown: 'hello' });
    },
  );

  it('DESIGN 12: counts each try at its provider, by its outcome', async () => {
    const script = { 'm/a@east': [[failing('router.provider_overloaded')]], 'm/a@west': [[failing('router.provider_unavailable')]], 'm/a@north': [well] };
    const { attempts } = await run(script);
    expect(attempts).toEqual([
      '{model="m/a",provider="east",outcome="router.provider_overloaded"} 1',
      '{model="m/a",provider="west",outcome="router.provider_unavailable"} 1',
      '{model="m/a",provider="north",outcome="ok"} 1',
    ]);
  });

  it('calls the next endpoint after an unexpected error', async () => {
    const { outcome, logged } = await run({ 'm/a@east': [[new TypeError('a bug')]], 'm/a@west': [well] });
    expect(outcome.type).toBe('completed');
    expect(logged).toContain('error: a provider adapter failed');
  });

  it.each([
    ['nothing at all', []],
    ['only an end of the wrong kind', [[{ type: 'finish' as const, reason: 'error' as const, nativeReason: 'error' }]]],
    ['usage without an end', [[{ type: 'usage' as const, usage: { promptTokens: 1, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 } }]]],
  ])('asks the next endpoint after an answer that holds %s', async (_, deeds) => {
    expect((await run({ 'm/a@east': [deeds], 'm/a@west': [well] })).asked).toEqual(['m/a@east', 'm/a@west']);
  });

  it.each(['router.provider_refused', 'request.too_large', 'router.content_policy'] as const)(
    'asks no other endpoint of the model after %s, but the next model that the caller has named',
    async (code) => {
      const script = { 'm/a@east': [[failing(code)]], 'm/a@west': [well], 'n/b@west': [well] };
      const { outcome, asked } = await run(script);
      expect(outcome).toMatchObject({ type: 'completed', candidate: { model: { id: 'n/b' } } });
      expect(asked).toEqual(['m/a@east', 'n/b@west']);
    },
  );

  it('DESIGN 8: a call ends with the last model’s refusal when every model refuses', async () => {
    const refused = failing('router.provider_refused', { status: 422 });
    const { outcome, asked } = await run({ 'm/a@east': [[failing('router.provider_refused')]], 'm/a@west': [well], 'n/b@west': [[refused]] });
    expect(outcome).toMatchObject({ type: 'failed', error: { details: { status: 422 } }, candidate: { model: { id: 'n/b' } } });
    expect(asked).toEqual(['m/a@east', 'n/b@west']);
  });

  it.each(['request.too_large', 'router.provider_refused'] as const)(
    'asks those that get the text of files once all others have failed, also after %s',
    async (code) => {
      const script = { 'm/a@east': [[failing(code)]], 'm/a@west': [[unavailable()]], 'n/b@east': [[unavailable()]], 'm/a@north': [well] };
      const { outcome, asked } = await run(script, { later: ['m/a@north', 'm/a@west'] });
      expect(outcome).toMatchObject({ type: 'completed', candidate: { provider: { slug: 'north' } }, answer: { text: 'hello' } });
      expect(asked).toEqual(['m/a@east', 'n/b@east', 'm/a@west', 'm/a@north']);
    },
  );

  it.each<[string, Deed[]]>([
    ['content', [[say('a')], unavailable()]],
    ['a refusal of the content', [failing('router.content_policy')]],
  ])('asks none of them of that model after %s', async (_, deeds) => {
    const { outcome, asked } = await run({ 'm/a@east': [deeds], 'm/a@west': [well] }, { later: ['m/a@west'] });
    expect([outcome.type, asked]).toEqual(['failed', ['m/a@east']]);
  });

  it('makes no more attempts with them than without', async () => {
    const places = Array.from({ length: 10 }, (_, at) => `m/a@p${at}`);
    const { asked } = await run(Object.fromEntries(places.map((place) => [place, [[unavailable()]]])), { later: places.slice(5) });
    expect(asked).toEqual(places.slice(0, 8));
  });

  it('calls only larger contexts, or other models, after a prompt that is too long', async () => {
    const tooLong: Deed[] = [failing('router.context_length')];
    const contexts = { 'm/a@east': 1_000, 'm/a@west': 500, 'm/a@north': 2_000, 'n/b@west': 100 };
    const { asked } = await run({ 'm/a@east': [tooLong], 'm/a@west': [well], 'm/a@north': [tooLong], 'n/b@west': [well] }, { contexts });
    expect(asked).toEqual(['m/a@east', 'm/a@north', 'n/b@west']);
  });

  it.each(['reset', 'refused'])('repeats a call whose connection was %s, and only once', async (connection) => {
    const reset = () => failing('router.provider_unavailable', { connection });
    expect((await run({ 'm/a@east': [[reset()], well] })).asked).toEqual(['m/a@east', 'm/a@east']);
    const twice = await run({ 'm/a@east': [[reset()], [reset()], well], 'm/a@west': [well] });
    expect(twice.asked).toEqual(['m/a@east', 'm/a@east', 'm/a@west']);
  });

  it('ends with the last error when no endpoint can answer, and lists those before', async () => {
    const limited = failing('router.provider_rate_limited', { status: 429, providerCode: 'slow_down' });
    const { outcome } = await run({ 'm/a@east': [[limited]], 'm/a@west': [[unavailable()]] });
    expect(outcome).toMatchObject({
      type: 'failed',
      error: { code: 'router.provider_unavailable' },
      partial: null,
      previousErrors: [{ provider: 'east', model: 'm/a', code: 'slow_down', status: 429 }],
    });
  });

  it('fails after eight tries', async () => {
    const providers = Array.from({ length: 12 }, (_, index) => `m/a@p${index}`);
    const { asked } = await run(Object.fromEntries(providers.map((index) => [index, [[unavailable()]]])));
    expect(asked).toEqual(providers.slice(0, 8));
  });
});

describe('the commit point', () => {
  it.each([
    ['text', say('half')],
    ['reasoning', { type: 'reasoning-delta' as const, text: 'hm' }],
    ['a refusal', { type: 'refusal-delta' as const, text: 'no' }],
    ['a tool call', { type: 'tool-call-start' as const, index: 0, id: 'c', name: 'f' }],
  ])('DESIGN 8: the point of no return is passed with %s: a failure after it is the end', async (_, part) => {
    const { outcome, asked } = await run({ 'm/a@east': [[[part], unavailable()]], 'm/a@west': [well] });
    expect(outcome).toMatchObject({ type: 'failed', candidate: { provider: { slug: 'east' } } });
    expect(outcome.type === 'failed' && outcome.partial).not.toBeNull();
    expect(asked).toEqual(['m/a@east']);
  });

  it('is reached for an answer that ends without a finish reason', async () => {
    const { outcome, asked } = await run({ 'm/a@east': [[[say('half')]]], 'm/a@west': [well] });
    expect(outcome).toMatchObject({ type: 'failed', error: { code: 'router.provider_unavailable' }, partial: { text: 'half' } });
    expect(asked).toEqual(['m/a@east']);
  });

  it.each([{ reasoning: { exclude: true } }, { include_reasoning: false }])('is not reached by reasoning that the caller hides with %o', async (request) => {
    const thought: ProviderPart = { type: 'reasoning-delta', text: 'a thought' };
    const signed: ProviderPart = { type: 'reasoning-signature', signature: 's', block: { index: 0, id: null, format: 'f' } };
    const broken = await run({ 'm/a@east': [[[thought, signed], unavailable()]], 'm/a@west': [well] }, { request });
    expect(broken).toMatchObject({ outcome: { type: 'completed' }, shown: 'hello', asked: ['m/a@east', 'm/a@west'] });
    const { outcome, shown } = await run({ 'm/a@east': [[[thought, say('hello')], [finish]]] }, { request });
    expect(shown).toBe('hello');
    expect(outcome).toMatchObject({ type: 'completed', answer: { text: 'hello', reasoning: '', hiddenReasoningChars: thought.text.length } });
  });

  it('is not reached by usage', async () => {
    const usage: ProviderPart = { type: 'usage', usage: { promptTokens: 1, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 } };
    const { outcome } = await run({ 'm/a@east': [[[usage], unavailable()]], 'm/a@west': [well] });
    expect(outcome).toMatchObject({ type: 'completed', answer: { text: 'hello', usage: null } });
  });

  it('ends an answer that never ends', async () => {
    const long = say('x'.repeat(9 * 1024 * 1024));
    const { outcome } = await run({ 'm/a@east': [[[long], [long], [finish]]] });
    expect(outcome).toMatchObject({ type: 'failed', error: { message: expect.stringContaining('an answer of more than') } });
  });
});

describe('an answer that is too long', () => {
  const usage: ProviderPart = { type: 'usage', usage: { promptTokens: 1, completionTokens: 9, cachedTokens: 0, reasoningTokens: 0 } };
  const start: ProviderPart = { type: 'tool-call-start', index: 0, id: 'c', name: 'f' };

  it.each<[string, ProviderPart[]]>([
    ['a text', [say('x'.repeat(11)), finish, usage]],
    ['reasoning', [{ type: 'reasoning-delta', text: 'x'.repeat(11) }]],
    ['arguments', [start, { type: 'tool-call-delta', index: 0, arguments: 'x'.repeat(11) }]],
    ['texts together', [say('x'.repeat(6)), { type: 'refusal-delta', text: 'x'.repeat(6) }]],
  ])('for a stream of its API with its first content, %s, is no content: the next endpoint is asked', async (_, parts) => {
    const { outcome, asked, shown } = await run({ 'm/a@east': [[parts]], 'm/a@west': [well] }, { maxTextChars: 10 });
    expect(outcome).toMatchObject({ type: 'completed', candidate: { provider: { slug: 'west' } }, answer: { text: 'hello' } });
    expect({ asked, shown }).toEqual({ asked: ['m/a@east', 'm/a@west'], shown: 'hello' });
  });

  const likely = (token: string) => ({ token, logprob: -1, bytes: [1, 2] });
  const saidWith = (token: string, alternatives: number): ProviderPart => {
    const content = [{ ...likely(token), top_logprobs: Array.from({ length: alternatives }, () => likely(token)) }];
    return { type: 'text-delta', text: 'x', logprobs: { content, refusal: null } };
  };

  it('has its log probabilities counted where it keeps them, in a stream of its API and as a whole', async () => {
    const long = saidWith('x'.repeat(9 * 1024 * 1024), 5);
    for (const [part, options] of [
      [saidWith('x', 20), { maxTextChars: 300, retainsAnswer: false }],
      [{ ...long, type: 'refusal-delta' }, {}],
      [long, {}],
    ] as [ProviderPart, RunOptions][]) {
      const { outcome, asked } = await run({ 'm/a@east': [[[part], [finish]]], 'm/a@west': [well] }, options);
      expect(outcome).toMatchObject({ type: 'completed', answer: { textChars: 5 } });
      expect(asked).toEqual(['m/a@east', 'm/a@west']);
    }
    const { outcome } = await run({ 'm/a@east': [[[saidWith('x', 20)], [saidWith('x', 20)]]] }, { maxTextChars: 500 });
    expect(outcome).toMatchObject({ type: 'failed', error: { message: expect.stringContaining('more than 500 characters') }, partial: { text: 'x' } });
  });

  it('is refused in words that name its log probabilities where they decide, and not where its text is too long without them', async () => {
    const aThird = ', counting a third of its log probabilities';
    const ofStream = ', the most that a stream of this API can have';
    const big = say('x'.repeat(9 * 1024 * 1024));
    for (const [parts, options, message] of [
      [[saidWith('x', 20)], { maxTextChars: 300, retainsAnswer: false }, `east sent an answer of more than 300 characters${ofStream}${aThird}`],
      [[saidWith('x', 20), say('x'.repeat(300))], { maxTextChars: 300 }, `east sent an answer of more than 300 characters${ofStream}`],
      [[saidWith('x'.repeat(9 * 1024 * 1024), 5)], {}, `east sent an answer of more than ${16 * 1024 * 1024} characters${aThird}`],
      [[big, big, saidWith('x', 20)], {}, `east sent an answer of more than ${16 * 1024 * 1024} characters`],
    ] as [ProviderPart[], RunOptions, string][]) {
      const { outcome } = await run({ 'm/a@east': [[parts]] }, options);
      expect(outcome).toMatchObject({ type: 'failed', error: { message } });
    }
  });

  it('has them not counted in a stream that passes them on, nor beyond its bound as they are short', async () => {
    const long = saidWith('x'.repeat(9 * 1024 * 1024), 5);
    for (const [part, options] of [
      [long, { retainsAnswer: false }],
      [saidWith('x', 20), { maxTextChars: 500 }],
    ] as [ProviderPart, RunOptions][]) {
      expect((await run({ 'm/a@east': [[[part], [finish]]] }, options)).outcome).toMatchObject({ type: 'completed', answer: { textChars: 1 } });
    }
  });

  it('behind hidden reasoning is no content either', async () => {
    const hidden: ProviderPart = { type: 'reasoning-delta', text: 'x'.repeat(9 * 1024 * 1024) };
    const deeds: Deed[] = [[hidden], [say('x'.repeat(9 * 1024 * 1024))]];
    const { outcome, asked } = await run({ 'm/a@east': [deeds], 'm/a@west': [well] }, { request: { reasoning: { exclude: true } } });
    expect(outcome).toMatchObject({ type: 'completed', answer: { text: 'hello' } });
    expect(asked).toEqual(['m/a@east', 'm/a@west']);
  });

  it('in the middle ends the call, with what was published', async () => {
    const { outcome, asked, shown } = await run({ 'm/a@east': [[[say('123456')], [say('789012')]]], 'm/a@west': [well] }, { maxTextChars: 10 });
    const message = 'east sent an answer of more than 10 characters, the most that a stream of this API can have';
    expect(outcome).toMatchObject({ type: 'failed', error: { message }, partial: { text: '123456', textChars: 6 } });
    expect({ asked, shown }).toEqual({ asked: ['m/a@east'], shown: '123456' });
  });

  it('has what is no text of its model in addition', async () => {
    const image: ProviderPart = { type: 'image', url: `data:image/png;base64,${'A'.repeat(100)}` };
    expect((await run({ 'm/a@east': [[[image, say('1234567890')], [finish]]] }, { maxTextChars: 10 })).outcome.type).toBe('completed');
  });
});

describe('an abort', () => {
  it('before the first try makes no attempt', async () => {
    const abort = new AbortController();
    abort.abort(failing('router.cancelled'));
    expect(await run({ 'm/a@east': [well] }, { abort })).toMatchObject({ outcome: { type: 'aborted', partial: null }, asked: [] });
  });

  it('before the first token ends the call', async () => {
    const { outcome, asked } = await run({ 'm/a@east': [['wait']], 'm/a@west': [well] }, { abortOn: 'm/a@east' });
    expect(outcome).toMatchObject({ type: 'aborted', partial: null });
    expect(asked).toEqual(['m/a@east']);
  });

  it('in the middle ends the call, and retains what was streamed', async () => {
    const { outcome, shown } = await run({ 'm/a@east': [[[say('half')], 'wait']], 'm/a@west': [well] }, { abortOn: 'shown' });
    expect(outcome).toMatchObject({ type: 'aborted', partial: { text: 'half' } });
    expect(shown).toBe('half');
  });

  it('DESIGN 8: an abort during a fallback ends the call', async () => {
    const { outcome, asked } = await run({ 'm/a@east': [[unavailable()]], 'm/a@west': [['wait']], 'm/a@north': [well] }, { abortOn: 'm/a@west' });
    expect(outcome.type).toBe('aborted');
    expect(asked).toEqual(['m/a@east', 'm/a@west']);
  });

  it('drops what an adapter still yields', async () => {
    const abort = new AbortController();
    const stubborn: ProviderAdapter = {
      slug: 'east',
      upstreamBody: () => ({}),
      async stream(_call, _signal, onParts) {
        onParts([say('a')]);
        abort.abort(failing('router.cancelled'));
        onParts([say('b')]);
      },
    };
    const candidates = candidatesOf(configOf(['m/a@east']));
    const shown: (readonly ProviderPart[])[] = [];
    const quiet = () => {};
    const deps = {
      adapters: new Map([['east', stubborn]]),
      timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1 },
      vectorBudget: new VectorBudget(),
      health: new Health({ clock: systemClock, log: silentLog, metrics: noMetrics }),
      log: { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet },
      metrics: noMetrics,
    };
    const outcome = await runCall(
      { candidates, partTransforms: [] },
      { retainsAnswer: true, begin: quiet, parts: (parts) => void shown.push(parts) },
      abort.signal,
      deps,
    );
    expect({ type: outcome.type, shown }).toEqual({ type: 'aborted', shown: [[say('a')]] });
  });
});
