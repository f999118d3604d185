import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shapeName } from '../shape.mjs';
import { engineDocuments, engineManifest, engineModelPath } from './engine-files.mjs';

/** @typedef {import('../shape.mjs').Shape} Shape */
/** @typedef {import('./engine-files.mjs').EngineOptions} EngineOptions */

/** The model that answers in a shape. @param {Shape} shape */
export function modelOf(shape) {
  return `bench/${shapeName(shape)}`;
}

/** Of a key that is never refused: what they cost is the same as with lower ones. */
const LIMITS = { limit: '1000000', limits: { requests_per_minute: 1_000_000_000, tokens_per_minute: 1_000_000_000, calls_at_once: 1_000_000 } };
const PRICES = { prompt: '0.15', completion: '0.6', cached_prompt: '0.075' };

/** Of the billed setting, each of which can be left out. @typedef {'limit' | 'rates' | 'slots' | 'prices' | 'traces'} BilledPart `slots`: of the rates the calls at once */

/** A routine with a webhook. Its runs fail at once by its input schema: what is measured is their acceptance. */
export const WEBHOOK = { path: '/webhooks/bench-hook', secret: 'bench-webhook-secret', variable: 'BENCH_WEBHOOK_SECRET' };

/** @param {readonly BilledPart[]} without */
function limitsWithout(without) {
  const { limit, limits } = LIMITS;
  const { calls_at_once: _, ...perMinute } = limits;
  return {
    ...(without.includes('limit') ? {} : { limit }),
    ...(without.includes('rates') ? {} : { limits: without.includes('slots') ? perMinute : limits }),
  };
}

/**
 * Writes a router's configuration with a model for every shape and one key, which has limits if calls are billed, and an agent of one sentence: a turn of it is one
 * model call. It has a routine with a webhook.
 *
 * @param {string} folder
 * @param {{ upstreamUrl: string, shapes: readonly Shape[], turnShape: Shape, isBilled?: boolean, without?: readonly BilledPart[], engine?: EngineOptions }} options `engine`: the agent has policies and a conversational routine
 * @returns {{ MANIFEST: string, ROUTER_CONFIG: string }} settings that name the files
 */
export function writeDeploymentFiles(folder, { upstreamUrl, shapes, turnShape, isBilled = false, without = [], engine }) {
  const write = (/** @type {string} */ path, /** @type {object} */ value) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(value));
    return join(folder, path);
  };
  const more = engine === undefined ? { context: { routines: [] }, runtime: {} } : engineManifest(engine);
  const names = [...new Set([...shapes, turnShape].map(shapeName)), ...(engine === undefined ? [] : [engineModelPath(engine.delayMs)])];
  const router = {
    providers: names.map((slug) => ({ slug, kind: 'openai-compatible', base_url: `${upstreamUrl}/${slug}/v1` })),
    models: names.map((slug) => ({
      id: `bench/${slug}`,
      endpoints: [{ provider: slug, upstream_model: 'bench', ...(isBilled && !without.includes('prices') ? { prices: PRICES } : {}) }],
    })),
    keys: [{ id: 'bench', key: '${ROUTER_API_KEY}', ...(isBilled ? limitsWithout(without) : {}) }],
  };
  const manifest = {
    id: 'bench',
    name: 'Bench',
    version: '1',
    agent_config: {
      runtime: { api_key: '${AGENT_API_KEY}', ...more.runtime },
      platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
      llms: { default: engine === undefined ? modelOf(turnShape) : `bench/${engineModelPath(engine.delayMs)}`, api_key: '${ROUTER_API_KEY}' },
      context: {
        ...{ system_prompt: { id: 'bench', version: 1 }, language: 'match_user' },
        ...more.context,
        routines: [{ id: 'bench-hook', version: 1 }, ...more.context.routines],
      },
    },
  };
  write('documents/routines/bench-hook.yaml', {
    id: 'bench-hook',
    version: 1,
    kind: 'autonomous',
    instructions: 'Nothing.',
    input_schema: { type: 'object', required: ['never'] },
    autonomous: { webhook: { secret_env: `\${${WEBHOOK.variable}}`, header: 'x-signature' } },
  });
  for (const [path, document] of Object.entries(engine === undefined ? {} : engineDocuments())) write(`documents/${path}.yaml`, document);
  write('documents/prompts/bench.yaml', { id: 'bench', version: 1, title: 'Role of the agent', type: 'text', text: 'You answer briefly.' });
  return { MANIFEST: write('manifest.yaml', manifest), ROUTER_CONFIG: write('router.json', router) };
}
