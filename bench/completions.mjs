import { addressOf, requestBytes } from './http/request.mjs';
import { shapeName } from './shape.mjs';
import { modelOf } from './targets/deployment-files.mjs';
import { markOf } from './upstream/answers.mjs';

/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {import('./shape.mjs').Shape} Shape */

/** A real key of an upstream is about as long. */
const UPSTREAM_KEY = 'sk-upstream-0123456789abcdef0123456789abcdef';

/**
 * How each target is asked for a completion in a shape. The ones that only hand on take the shape from the path.
 *
 * @type {Record<string, (target: Target, upstreamUrl: string, shape: Shape) => { path: string, model: string, headers: Record<string, string> }>}
 */
const ways = {
  direct: handedOn,
  'raw-proxy': handedOn,
  'bare-hop': handedOn,
  portkey: (_, upstreamUrl, shape) => ({
    path: '/v1/chat/completions',
    model: 'bench',
    headers: {
      authorization: `Bearer ${UPSTREAM_KEY}`,
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `${upstreamUrl}/${shapeName(shape)}/v1`,
    },
  }),
  switchyard: ofSwitchyard,
  standalone: ofSwitchyard,
};

/**
 * @param {Target} target
 * @param {string} upstreamUrl
 * @param {Shape} shape
 */
export function completionsOf(target, upstreamUrl, shape) {
  const way = ways[target.name];
  if (way === undefined || target.facts.routerUrl === undefined) throw new Error(`${target.name} has no chat completions`);
  const { path, model, headers } = way(target, upstreamUrl, shape);
  const address = addressOf(target.facts.routerUrl);
  return {
    address,
    /**
     * @param {{ stream: boolean, id?: number, promptBytes?: number }} request `id` is what the upstream puts into every token
     * @returns {Buffer}
     */
    requestOf: ({ stream, id = 0, promptBytes = 0 }) => {
      const content = `${markOf(id)} How long is the warranty of my machine? ${'Please be brief. '.repeat(Math.ceil(promptBytes / 17))}`;
      return requestBytes({ address, path, headers, body: JSON.stringify({ model, stream, messages: [{ role: 'user', content }] }) });
    },
  };
}

/** @param {Target} _ @param {string} _upstreamUrl @param {Shape} shape */
function handedOn(_, _upstreamUrl, shape) {
  return { path: `/${shapeName(shape)}/v1/chat/completions`, model: 'bench', headers: { authorization: `Bearer ${UPSTREAM_KEY}` } };
}

/** @param {Target} target @param {string} _upstreamUrl @param {Shape} shape */
function ofSwitchyard({ facts }, _upstreamUrl, shape) {
  return { path: '/api/v1/chat/completions', model: modelOf(shape), headers: { authorization: `Bearer ${facts.keys?.routerKey ?? ''}` } };
}
