import { addressOf, requestBytes } from './http/request.mjs';
import { shapeName } from './shape.mjs';
import { modelOf } from './targets/deployment-files.mjs';
import { markOf } from './upstream/answers.mjs';

/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {import('./shape.mjs').Shape} Shape */

/** A real key of an upstream is about as long. */
const UPSTREAM_KEY = 'sk-upstream-0123456789abcdef0123456789abcdef';

/** What an application puts before the question: a few paragraphs. */
const SYSTEM_PROMPT = [
  'You are the assistant of a shop for coffee machines. You answer questions about orders, deliveries, repairs and the warranty.',
  'Answer in the language of the question, in at most three sentences, and without lists. Name the article of the terms that you rely on.',
  'If you do not know the answer, say so and offer to hand the conversation to a colleague. Never promise refunds, dates or prices.',
  'The warranty covers two years from the day of purchase. Parts that wear, such as seals and filters, are covered for six months.',
].join('\n\n');

/** As many as an assistant of a shop has. */
const FUNCTIONS = ['find_order', 'find_customer', 'list_deliveries', 'book_repair', 'cancel_order', 'read_terms', 'open_ticket', 'hand_over'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: 'Reads or changes the records of the shop. Ask the customer for what is missing before you call it.',
    parameters: {
      type: 'object',
      properties: { order: { type: 'string', description: 'the number of the order, as it stands on the bill' }, reason: { type: 'string' } },
      required: ['order'],
      additionalProperties: false,
    },
  },
}));

/**
 * A request's body: the question alone, or with what applications send beside it, functions included where one is to be called.
 *
 * @type {Record<import('./shape.mjs').AnswerForm, (asked: { model: string, stream: boolean, content: string }) => object>}
 */
const bodies = {
  tools: (asked) => ({ ...withParameters(asked), tools: FUNCTIONS, tool_choice: 'auto' }),
  reasoning: withParameters,
  plain: ({ model, stream, content }) => ({ model, stream, messages: [{ role: 'user', content }] }),
  vendor: withParameters,
};

/** @param {{ model: string, stream: boolean, content: string }} asked */
function withParameters({ model, stream, content }) {
  return {
    model,
    messages: [
      { role: 'system', content: SYSTEM_PROMPT },
      { role: 'user', content },
    ],
    temperature: 0.7,
    top_p: 0.95,
    max_tokens: 1_024,
    presence_penalty: 0,
    frequency_penalty: 0,
    stop: ['\n\nCustomer:'],
    user: 'customer-4711',
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
  };
}

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
  'former-settings': ofSwitchyard,
  billed: ofSwitchyard,
  'co-located': ofSwitchyard,
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
      return requestBytes({ address, path, headers, body: JSON.stringify(bodies[shape.traffic]({ model, stream, content })) });
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
