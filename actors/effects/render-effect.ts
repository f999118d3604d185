import { actorFields } from '#bus/messages/actor-fields.ts';
import type { DeliveryWork } from '#bus/messages/delivery.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { ToolWork } from '#bus/messages/tool.ts';
import { readBundle } from '#shared/config/bundle-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { composePrompt } from '../engine/compose-prompt.ts';
import type { EffectOf, EffectRow } from './effects.ts';
import type { RenderDeps } from './render-deps.ts';
import { renderRunCall, renderToolCall } from './render-run.ts';
import { replyTo } from './reply-to.ts';

/** The current one, and a few more during a rollout. */
const MAX_BUNDLES = 8;

/** Cached: the content of a hash never changes. */
export function bundleReader(database: Database): (hash: string) => Promise<Bundle> {
  const known = new Map<string, Bundle>();
  return async (hash) => {
    const cached = known.get(hash);
    if (cached !== undefined) return cached;
    const bundle = await readBundle(database, hash);
    if (bundle === null) throw new SwitchyardError('config.invalid', `there is no configuration ${hash.slice(0, 12)}`);
    known.set(hash, bundle);
    for (const oldest of known.keys()) {
      if (known.size <= MAX_BUNDLES) break;
      known.delete(oldest);
    }
    return bundle;
  };
}

/**
 * Renders a work item from its effect's row. Reads only immutable data, so a host that takes over renders the same.
 *
 * @param republished the item may have been on the bus before: the worker checks the effect's row first
 */
export async function renderEffect(effect: EffectRow, republished: boolean, deps: RenderDeps): Promise<string> {
  return JSON.stringify(await itemOf(effect, republished, deps));
}

async function itemOf(effect: EffectRow, republished: boolean, deps: RenderDeps): Promise<RouterCall | ToolWork | DeliveryWork> {
  const { id: effectId, sessionId, actorId, createdAtMs, inputs } = effect;
  const { deadlineAtMs, traceparent } = inputs;
  switch (effect.kind) {
    case 'router-call':
      return renderTurnCall(effect, republished, deps);
    case 'run-call':
      return renderRunCall(effect, republished, deps);
    case 'tool-list': {
      const { bundleHash, servers } = effect.inputs;
      return {
        v: 1,
        type: 'list',
        effectId,
        sessionId,
        ...actorFields(actorId),
        bundleHash,
        deadlineAtMs,
        createdAtMs,
        republished,
        traceparent,
        servers: [...servers],
      };
    }
    case 'tool-call':
      return renderToolCall(effect, republished, deps);
    case 'delivery':
      return { v: 1, effectId, deliveryId: effect.inputs.deliveryId, sessionId, deadlineAtMs, createdAtMs, republished, traceparent };
  }
}

async function renderTurnCall(effect: EffectOf<'router-call'>, republished: boolean, deps: RenderDeps): Promise<RouterCall> {
  const { inputs, sessionId, createdAtMs } = effect;
  const { manifest, documents } = (await deps.bundleOf(inputs.bundleHash)).body;
  const { context, llms } = manifest.agent_config;
  const reference = context.system_prompt;
  const prompt = documents.prompts.find(({ id, version }) => id === reference.id && version === reference.version);
  if (prompt === undefined) throw new SwitchyardError('config.invalid', `the configuration lacks the prompt ${reference.id} version ${reference.version}`);
  const messages = composePrompt({
    agent: { id: manifest.id, name: manifest.name },
    systemPrompt: prompt.text,
    language: context.language,
    history: await deps.histories.upTo(inputs.upToOffset, effect),
    nowMs: createdAtMs,
  });
  return {
    v: 1,
    callId: effect.id,
    origin: sessionId,
    want: deps.settings.streaming ? 'frames' : 'none',
    deadlineAtMs: inputs.deadlineAtMs,
    createdAtMs,
    detached: false,
    republished,
    keyId: 'llms.api_key',
    traceparent: inputs.traceparent,
    maxTokens: deps.settings.maxTokens,
    request: {
      messages,
      model: llms.default,
      models: llms.fallback.length > 0 ? llms.fallback : undefined,
      session_id: sessionId,
    },
    reply: replyTo(effect, deps),
  };
}
