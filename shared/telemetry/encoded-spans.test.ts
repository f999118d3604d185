import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { describe, expect, it } from 'vitest';
import { encodedSpans } from './encoded-spans.ts';
import { readableSpan } from './readable-span.ts';
import type { FinishedSpan } from './tracing.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const RESOURCE = { 'service.name': 'test', 'process.pid': 4711, 'process.owner': 'x'.repeat(300) };
const UNLIMITED = { attributes: null, links: null, valueChars: null, events: null, eventAttributes: null };
const reference = { traceId: TRACE, spanId: '00f067aa0ba902b7', isSampled: true };
const plain: FinishedSpan = { name: 'work', kind: 'internal', parent: null, startMs: 1_764_294_000_123.456, endMs: 1_764_294_000_200 };

/** The bytes by this encoder, and by the library's. */
function bothOf(spans: readonly FinishedSpan[], limits: typeof UNLIMITED | Record<keyof typeof UNLIMITED, number> = UNLIMITED) {
  const encoder = encodedSpans(RESOURCE, limits);
  for (const span of spans) encoder.add(span, reference);
  const resource = resourceFromAttributes(RESOURCE);
  const expected = ProtobufTraceSerializer.serializeRequest(spans.map((span) => readableSpan(span, reference, resource, limits)));
  return { encoded: Buffer.from(encoder.take().bytes).toString('hex'), expected: Buffer.from(expected ?? []).toString('hex') };
}

describe('spans are encoded as the library encodes them', () => {
  const cases: Record<string, readonly FinishedSpan[]> = {
    'without anything': [plain],
    'of each kind and scope': [
      { ...plain, kind: 'server', parent: PARENT, scope: 'switchyard.gen_ai' },
      { ...plain, kind: 'client', scope: 'switchyard.messaging' },
      { ...plain, kind: 'producer', scope: 'switchyard.gen_ai' },
      plain,
    ],
    'with values of each type': [
      {
        ...plain,
        attributes: {
          ...{
            none: undefined,
            yes: true,
            no: false,
            zero: 0,
            one: 1,
            small: 127,
            larger: 128,
            negative: -1,
            fraction: 0.25,
            infinite: Number.POSITIVE_INFINITY,
          },
          ...{ exact: 2 ** 53, beyond: 2 ** 63, below: -(2 ** 63), wide: 2 ** 32, most: 2 ** 32 - 1, far: -(2 ** 40) - 3 },
          ...{ empty: '', list: ['a', '', 'ü'], nothing: [] },
        },
      },
    ],
    'with texts of all lengths and characters': [
      {
        ...plain,
        name: 'ü'.repeat(200),
        attributes: Object.fromEntries(
          ['a', 'é', '漢', '🙂', '\ud83d'].flatMap((text) =>
            [1, 50, 63, 64, 65, 90, 127, 128, 256, 257, 5_000].map((many) => [`${text}.${many}`, text.repeat(many)]),
          ),
        ),
      },
    ],
    'with content': [{ ...plain, attributes: { 'gen_ai.input.messages': 'x'.repeat(100_000), 'gen_ai.tool.definitions': 'é'.repeat(20_000) } }],
    'with an error, links and events': [
      {
        ...plain,
        errorType: 'router.timeout',
        links: [PARENT, 'nonsense', PARENT.replace(/01$/, '00')],
        events: [
          { name: 'begun', atMs: 1_500.5 },
          { name: 'ended', atMs: 0, attributes: { one: 1 } },
        ],
      },
    ],
    'that end before they begin, long ago and late': [
      { ...plain, endMs: 0 },
      { ...plain, startMs: 0, endMs: 999.999 },
      { ...plain, startMs: 4_294_967_296_000, endMs: 4_294_967_296_001 },
    ],
    'in hundreds': Array.from({ length: 300 }, (_, index) => ({ ...plain, attributes: { index, text: 'x'.repeat(index) } })),
  };
  it.each(Object.entries(cases))('%s', (_, spans) => {
    const { encoded, expected } = bothOf(spans);
    expect(encoded).toBe(expected);
  });

  it('within the limits of their settings', () => {
    const limits = { attributes: 2, links: 1, valueChars: 5, events: 1, eventAttributes: 1 };
    const attributes = { one: 'abcdefghij', two: ['abcdefghij'], three: 3, four: undefined, 'gen_ai.input.messages': 'abcdefghij' };
    const span = { ...plain, attributes, links: [PARENT, PARENT], events: [1, 2].map((atMs) => ({ name: 'e', atMs, attributes })), errorType: 'x' };
    const { encoded, expected } = bothOf([span], limits);
    expect(encoded).toBe(expected);
  });
});

it('a span that can not be encoded leaves those around it as they are', () => {
  const unreadable: FinishedSpan = {
    ...plain,
    attributes: {
      get broken(): string {
        throw new Error('no value');
      },
    },
  };
  const [encoder, without] = [encodedSpans(RESOURCE, UNLIMITED), encodedSpans(RESOURCE, UNLIMITED)];

  expect(() => encoder.add({ ...unreadable, scope: 'switchyard.gen_ai' }, reference)).toThrow('no value');
  encoder.add(plain, reference);
  expect(() => encoder.add(unreadable, reference)).toThrow('no value');
  encoder.add(plain, reference);
  for (const span of [plain, plain]) without.add(span, reference);

  expect(encoder.take()).toEqual(without.take());
});

it('begins each batch anew, and says how many bytes each span has', () => {
  const encoder = encodedSpans(RESOURCE, UNLIMITED);
  const sizes = [plain, { ...plain, attributes: { 'gen_ai.input.messages': 'x'.repeat(1_000) } }].map((span) => encoder.add(span, reference));
  const { count } = encoder.take();
  encoder.add(plain, reference);
  const second = encoder.take();

  expect([count, second.count]).toEqual([2, 1]);
  expect(sizes[1]).toBeGreaterThan((sizes[0] ?? 0) + 1_000);
  expect(Buffer.from(second.bytes).toString('hex')).toBe(bothOf([plain]).expected);
});
