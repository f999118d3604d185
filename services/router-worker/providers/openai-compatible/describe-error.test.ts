import { describe, expect, it } from 'vitest';
import { ErrorEvent } from '../http-stream/error-event.ts';
import { toBreak, toRefusal } from '../http-stream/to-error.ts';
import { describeError } from './describe-error.ts';

const upstream = { name: 'Loop', apiKey: null, describeError };
const refusal = (status: number, body: unknown) => toRefusal(upstream, { status, header: () => null, text: JSON.stringify(body), nowMs: 0 });

describe('an upstream’s message reaches the caller', () => {
  it.each<[what: string, body: unknown, message: string]>([
    ['OpenAI’s', { error: { message: 'no', type: 't', code: null } }, 'no'],
    ['a text', { error: 'no' }, 'no'],
    ['fields at the top', { message: 'no' }, 'no'],
    ['a detail that is a text', { detail: 'no' }, 'no'],
    ['a detail for each field', { detail: [{ loc: ['body', 'seed'], msg: 'no' }] }, 'body.seed: no'],
    ['a detail within the message', { message: { detail: 'no' } }, 'no'],
    ['a list of one error', [{ error: { message: 'no', code: 429, status: 'RESOURCE_EXHAUSTED' } }], 'no'],
    ['a list of one error’s fields', [{ message: 'no' }], 'no'],
  ])('DESIGN 8: where the body is %s', (_, body, message) => {
    expect(refusal(429, body)).toMatchObject({ code: 'router.provider_rate_limited', message: `Loop: ${message}`, details: { status: 429 } });
  });

  it.each([[[]], [[[]]], [[1]], [{ detail: {} }], [{ detail: [1] }], [null]])('and is the status where %j has none', (body) => {
    expect(refusal(400, body)).toMatchObject({ code: 'router.provider_refused', message: 'Loop: it answered 400' });
  });

  it('with the status that an event in a stream has as its code', () => {
    const failure = toBreak(upstream, new ErrorEvent({ message: 'slow down', code: 429 }));
    expect(failure).toMatchObject({ code: 'router.provider_rate_limited', message: 'Loop: slow down', details: { status: 429 } });
  });

  it('also as a refusal because of the context', () => {
    expect(refusal(400, { detail: 'This model has a maximum context length of 8 tokens' })).toMatchObject({ code: 'router.context_length' });
  });
});
