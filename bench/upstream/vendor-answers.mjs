import { randomBytes } from 'node:crypto';
import { chunk, tokenText, usageOf } from './answer-parts.mjs';

/** What OpenAI sends before a body, some 1.2 KB: others differ in names, hardly in size. */
const HEADERS = [
  'Date: Sat, 22 Nov 2025 10:00:00 GMT',
  'Connection: keep-alive',
  'access-control-expose-headers: X-Request-ID',
  'openai-organization: bench-organization',
  'openai-processing-ms: 320',
  'openai-project: proj_0123456789abcdefABCDEF01',
  'openai-version: 2020-10-01',
  'x-envoy-upstream-service-time: 341',
  'x-ratelimit-limit-requests: 10000',
  'x-ratelimit-limit-tokens: 2000000',
  'x-ratelimit-remaining-requests: 9999',
  'x-ratelimit-remaining-tokens: 1999210',
  'x-ratelimit-reset-requests: 6ms',
  'x-ratelimit-reset-tokens: 23ms',
  'x-request-id: req_0123456789abcdef0123456789abcdef',
  'cf-cache-status: DYNAMIC',
  `Set-Cookie: __cf_bm=${'c'.repeat(87)}; path=/; expires=Sat, 22-Nov-25 10:30:00 GMT; domain=.example.com; HttpOnly; Secure; SameSite=None`,
  'Strict-Transport-Security: max-age=31536000; includeSubDomains; preload',
  'X-Content-Type-Options: nosniff',
  'Server: cloudflare',
  'CF-RAY: 99f0123456789abc-FRA',
  'alt-svc: h3=":443"; ma=86400',
].join('\r\n');
const HEAD_OF_STREAM = `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n${HEADERS}\r\n\r\n`;

const ID = '"id":"chatcmpl-DL2G9KdEY06xq8M0PqZ5rs5Jv13ok"';
const TIER = '"service_tier":"default","system_fingerprint":"fp_f986a632b0"';
const BEFORE_CHOICES = `data: {${ID},"object":"chat.completion.chunk","created":1773905945,"model":"gpt-4o-2024-08-06",${TIER},"choices":[`;
const BEFORE_DELTA = `${BEFORE_CHOICES}{"index":0,"delta":{`;
const ROLE = '"role":"assistant","content":"","refusal":null';
const WHOLE_HEAD = `{${ID},"object":"chat.completion","created":1773905945,"model":"gpt-4o-2024-08-06"`;

/** OpenAI pads each chunk with up to some sixteen characters that are not guessed, so that lengths on the wire reveal nothing of the text. */
const PADS = Array.from({ length: 1_021 }, () =>
  randomBytes(12)
    .toString('base64url')
    .slice(Math.floor(Math.random() * 16)),
);
let nextPad = 0;

/** As `api.openai.com` answers; the form was taken from streams that people have published. @type {import('./answers.mjs').Answers} */
export const vendorAnswers = vendorForm({
  message: (text) => `"content":${JSON.stringify(text)},"refusal":null,"annotations":[]`,
  delta: (text) => `"content":"${text}"`,
  finish: 'stop',
});

/**
 * Vendor traffic, with the tokens in other fields than `content`.
 *
 * @param {{ message: (text: string) => string, first?: string, delta: (text: string) => string, finish: string }} form the fields of a whole message, of a stream's
 *   first chunk beside the role, and of a chunk with a token, as JSON; `text` needs no escapes
 * @returns {import('./answers.mjs').Answers}
 */
export function vendorForm({ message, first = '', delta, finish }) {
  const between = (/** @type {string} */ fields, /** @type {import('./answers.mjs').Asked} */ asked) =>
    event(`${BEFORE_DELTA}${fields}},"logprobs":null,"finish_reason":null}]`, null, asked);
  return {
    whole: (tokens) => {
      const text = Array.from({ length: tokens }, (_, number) => tokenText(0, number)).join('');
      const choice = `{"index":0,"message":{"role":"assistant",${message(text)}},"logprobs":null,"finish_reason":"${finish}"}`;
      const body = `${WHOLE_HEAD},"choices":[${choice}],"usage":${JSON.stringify(detailedUsage(tokens))},${TIER}}`;
      return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${HEADERS}\r\n\r\n${body}`;
    },
    head: () => HEAD_OF_STREAM,
    token: (id, number, asked) => (number === 0 ? between(`${ROLE}${first}`, asked) : '') + between(delta(tokenText(id, number)), asked),
    end: (tokens, asked) => {
      const last = event(`${BEFORE_DELTA}},"logprobs":null,"finish_reason":"${finish}"}]`, null, asked);
      const usage = asked.usage ? event(`${BEFORE_CHOICES}]`, detailedUsage(tokens), asked) : '';
      return `${last}${usage}${chunk('data: [DONE]\n\n')}0\r\n\r\n`;
    },
  };
}

/** One event as one chunk of the body. A request for usage gets the key in every event, null before the last. @param {string} start @param {object | null} usage @param {import('./answers.mjs').Asked} asked */
function event(start, usage, asked) {
  nextPad = (nextPad + 1) % PADS.length;
  return chunk(`${start}${asked.usage ? `,"usage":${JSON.stringify(usage)}` : ''},"obfuscation":"${PADS[nextPad]}"}\n\n`);
}

/** @param {number} tokens */
function detailedUsage(tokens) {
  return {
    ...usageOf(tokens),
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
  };
}
