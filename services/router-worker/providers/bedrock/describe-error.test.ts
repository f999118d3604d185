import { expect, it } from 'vitest';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { type Refusal, toBreak, toRefusal } from '../http-stream/to-error.ts';
import { describeError } from './describe-error.ts';

const upstream = { name: 'Bedrock', apiKey: null, describeError };
const refusal = (status: number, body: object, headers: Record<string, string> = {}): Refusal => ({
  status,
  header: (name) => headers[name] ?? null,
  text: JSON.stringify(body),
  nowMs: 0,
});

const TYPES = [
  ['ValidationException', 400, 'router.provider_refused', 400],
  ['AccessDeniedException', 403, 'router.provider_misconfigured', 403],
  ['UnrecognizedClientException', 403, 'router.provider_misconfigured', 403],
  ['ExpiredTokenException', 403, 'router.provider_misconfigured', 403],
  ['IncompleteSignatureException', 400, 'router.provider_misconfigured', 403],
  ['ResourceNotFoundException', 404, 'router.provider_misconfigured', 404],
  ['ModelTimeoutException', 408, 'router.provider_unavailable', 408],
  ['ModelErrorException', 424, 'router.provider_unavailable', 502],
  ['ThrottlingException', 429, 'router.provider_rate_limited', 429],
  ['ServiceQuotaExceededException', 400, 'router.provider_rate_limited', 429],
  ['ModelNotReadyException', 429, 'router.provider_rate_limited', 429],
  ['InternalServerException', 500, 'router.provider_unavailable', 500],
  ['ServiceUnavailableException', 503, 'router.provider_overloaded', 503],
] as const;

it.each(TYPES)('maps a %s, whether a header or the body names it, or a stream holds it', (type, status, code, meant) => {
  const details = { status: meant, providerCode: type };
  const byHeader = toRefusal(
    upstream,
    refusal(status, { message: 'no' }, { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/`, 'retry-after': '3' }),
  );
  expect(byHeader).toMatchObject({ code, message: 'Bedrock: no', details: { ...details, retryAfterMs: 3_000 } });
  expect(toRefusal(upstream, refusal(status, { __type: `com.amazon.coral.service#${type}`, Message: 'no' }))).toMatchObject({ code, details });
  const inStream = { __type: `${type[0]?.toLowerCase()}${type.slice(1)}`, message: 'no' };
  expect(toBreak(upstream, new ErrorEvent(inStream))).toMatchObject({ code, details });
});

it.each([
  ['Input is too long for requested model.', 'router.context_length'],
  ['The model returned the following errors: input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000', 'router.context_length'],
  ['Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.', 'router.context_length'],
  ['Too many input tokens. Max input tokens: 8192, request input token count: 9000', 'router.context_length'],
  ['Output blocked by content filtering policy', 'router.content_policy'],
  ['The provided model identifier is invalid.', 'router.provider_misconfigured'],
  ['Invocation of model ID x with on-demand throughput isn’t supported. Retry with the ID of an inference profile.', 'router.provider_misconfigured'],
])('reads the cause of a ValidationException in its words: %s', (message, code) => {
  expect(toRefusal(upstream, refusal(400, { message }, { 'x-amzn-errortype': 'ValidationException' }))).toMatchObject({ code });
});

it('leaves the status of types that are not known, and of bodies that are no JSON', () => {
  expect(toRefusal(upstream, refusal(503, { __type: 'SomethingNew', message: 'no' }))).toMatchObject({ code: 'router.provider_overloaded' });
  expect(toRefusal(upstream, { ...refusal(502, {}), text: '<html>' })).toMatchObject({ code: 'router.provider_unavailable', details: { status: 502 } });
  expect(toBreak(upstream, new ErrorEvent({ __type: 'modelStreamErrorException', originalMessage: 'the model failed' }))).toMatchObject({
    code: 'router.provider_unavailable',
    message: 'Bedrock: the model failed',
  });
});
