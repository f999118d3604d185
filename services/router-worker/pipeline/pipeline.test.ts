import { describe, expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { ItemAbortController } from '#services/work/item-signal.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { catalogueOf } from '../call/candidates.ts';
import { executeCall } from '../call/execute-call.ts';
import { Health } from '../call/health/health.ts';
import { VectorBudget } from '../call/vector-budget.ts';
import type { ProviderAdapter } from '../providers/provider.ts';
import { configuredProviders } from '../providers/registry.ts';
import { pipelineFor } from './pipeline.ts';
import type { Stage } from './stage.ts';
import { stages } from './stages.ts';

const config = routerConfig.parse({
  providers: [{ slug: 'local', kind: 'scripted' }],
  models: ['a/one', 'b/two'].map((id) => ({ id, endpoints: [{ provider: 'local', upstream_model: id, prices: { prompt: '0', completion: '0' } }] })),
  keys: [{ id: 'k', key: '${KEY}' }],
});
const request: ChatRequest = { model: 'a/one', messages: [{ role: 'user', content: 'hi' }] };
const quiet = () => {};
const always = { appliesTo: () => true };

/** Executes a call at a provider that repeats the model's name in the given pieces. */
async function execute(given: readonly Stage[], { want = 'body', fields = {} }: { want?: RouterCall['want']; fields?: Partial<ChatRequest> } = {}) {
  const asked: ChatRequest[] = [];
  let written = '';
  const adapter: ProviderAdapter = {
    slug: 'local',
    upstreamBody: () => ({}),
    async stream(call, _signal, onParts) {
      asked.push(call.request);
      const parts: ProviderPart[] = [
        { type: 'reasoning-delta', text: 'hm' },
        { type: 'text-delta', text: call.model },
      ];
      for (const part of parts) if (!onParts([part])) return;
      onParts([{ type: 'finish', reason: 'stop', nativeReason: 'stop' }]);
    },
  };
  const result = await executeCall(
    {
      call: {
        v: 1,
        callId: 'gen-1',
        origin: 'o',
        want,
        deadlineAtMs: 0,
        createdAtMs: 0,
        detached: false,
        republished: false,
        traceparent: null,
        keyId: 'k',
        maxTokens: null,
        request: { ...request, ...fields },
        reply: null,
      },
      attempt: 1,
      signal: new ItemAbortController(),
      mayPublish: () => true,
      surface: chatCompletions,
      tokens: {
        publish: (_subject, frame) => {
          written += Buffer.from(frame).toString('utf8');
        },
      },
      framesAt: 'tok.o.gen-1',
      nowMs: 0,
    },
    {
      adapters: new Map([['local', adapter]]),
      timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1 },
      vectorBudget: new VectorBudget(),
      health: new Health({ clock: systemClock, log: silentLog, metrics: noMetrics }),
      log: { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet },
      metrics: noMetrics,
      catalogue: catalogueOf(config, configuredProviders(config)),
      stages: given,
    },
  );
  return { result, asked, written };
}

const shouting: Stage = {
  ...always,
  parts: () => (parts) => parts.map((part) => (part.type === 'text-delta' ? { ...part, text: part.text.toUpperCase() } : part)),
};

describe('the stages of a call', () => {
  it('change its request before the candidates are chosen, in order', async () => {
    const toModel = (model: string): Stage => ({
      ...always,
      request: async (staged) => ({ ...staged, request: { ...staged.request, model, user: `${staged.request.user ?? ''}+${model}` } }),
    });
    const { result, asked } = await execute([toModel('none/such'), toModel('b/two')]);
    expect(result).toMatchObject({ type: 'completed', model: 'b/two' });
    expect(asked[0]?.user).toBe('+none/such+b/two');
  });

  it('end it before any provider is asked', async () => {
    const refusing: Stage = { ...always, request: async () => Promise.reject(new SwitchyardError('router.content_policy', 'flagged')) };
    const { result, asked, written } = await execute([refusing]);
    expect(result).toMatchObject({ type: 'failed', failure: { code: 'router.content_policy' } });
    expect(asked).toEqual([]);
    expect(written).toContain('flagged');
  });

  it.each(['body', 'frames'] as const)('transform its parts before they reach the answer, as %s', async (want) => {
    const { result, written } = await execute([shouting], { want });
    expect(written).toContain('A/ONE');
    expect(result).toMatchObject({ type: 'completed' });
  });

  it('transform a whole answer, and no streamed one', async () => {
    const mending: Stage = { ...always, answer: async (answer) => ({ ...answer, text: `${answer.text}, mended` }) };
    expect((await execute([mending])).written).toContain('a/one, mended');
    expect((await execute([mending], { want: 'frames' })).result).toMatchObject({ type: 'completed', text: '' });
  });

  it('end it with an error when a transform of the whole answer fails', async () => {
    const failing: Stage = { ...always, answer: async () => Promise.reject(new SwitchyardError('router.content_policy', 'not mendable')) };
    expect((await execute([failing])).result).toMatchObject({ type: 'failed', failure: { code: 'router.content_policy' } });
  });

  it('are skipped where they do not apply', async () => {
    const { written } = await execute([{ ...shouting, appliesTo: ({ user }) => user !== undefined }]);
    expect(written).toContain('a/one');
  });

  it('are those of the plugins that the suffix of a name asks for', async () => {
    const searching: Stage = { ...shouting, appliesTo: ({ plugins = [] }) => plugins.some(({ id }) => id === 'web') };
    expect((await execute([searching], { fields: { model: 'a/one:online' } })).written).toContain('A/ONE');
    expect((await execute([searching])).written).toContain('a/one');
  });

  it('hide reasoning when the caller excludes it, and are one shared empty pipeline for a plain request', async () => {
    expect((await execute(stages)).written).toContain('hm');
    expect((await execute(stages, { fields: { reasoning: { exclude: true } } })).written).not.toContain('hm');
    expect(pipelineFor(request, stages)).toBe(pipelineFor({ ...request, temperature: 1 }, stages));
  });
});

describe('what a stage adds to a call', () => {
  const found = { type: 'url_citation' as const, url_citation: { url: 'https://a.example/', title: 'A' } };
  const adding: Stage = {
    ...always,
    request: async (staged) => ({ ...staged, annotations: [found], search: { engine: 'acme', results: 3 }, costNano: 5_000_000 }),
  };

  it('is stated behind the text of a whole answer and of a stream, once, with its cost and the searches in the usage', async () => {
    const { message, usage } = await execute([adding]).then(({ written }) => {
      const { choices, usage } = JSON.parse(written.slice(written.indexOf('{')));
      return { message: choices[0].message, usage };
    });
    expect(message).toMatchObject({ content: 'a/one', annotations: [found] });
    expect(usage).toMatchObject({ cost: 0.005, server_tool_use: { web_search_requests: 1 } });
    const { written } = await execute([adding], { want: 'frames' });
    expect(written.split('"annotations"')).toHaveLength(2);
    expect(written.indexOf('"annotations"')).toBeGreaterThan(written.indexOf('a/one"'));
    expect(written).toContain('"server_tool_use":{"web_search_requests":1}');
  });

  it('is not there without it', async () => {
    const { written } = await execute([{ ...always, request: async (staged) => staged }]);
    expect(written).not.toMatch(/annotations|server_tool_use/);
  });
});

describe('a plugin whose engine is not configured', () => {
  it('ends the call with its place, before any provider', async () => {
    const { asked, result } = await execute(stages, { fields: { plugins: [{ id: 'moderation' }] } });
    expect([asked, result]).toMatchObject([[], { type: 'failed', failure: { code: 'request.invalid' } }]);
  });
});
