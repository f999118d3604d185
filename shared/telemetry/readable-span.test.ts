import { resourceFromAttributes } from '@opentelemetry/resources';
import { expect, it } from 'vitest';
import { readableSpan } from './readable-span.ts';

it('names its scope by one object, by which exporters group spans', () => {
  const resource = resourceFromAttributes({});
  const limits = { attributes: null, links: null, valueChars: null, events: null, eventAttributes: null };
  const span = { name: 'work', kind: 'internal', parent: null, startMs: 0, endMs: 1 } as const;
  const reference = { traceId: '0'.repeat(31).concat('1'), spanId: '0'.repeat(15).concat('1'), isSampled: true };
  const spans = [span, { ...span, scope: 'switchyard.gen_ai' } as const, span].map((one) => readableSpan(one, reference, resource, limits));
  const [one, other, third] = spans.map(({ instrumentationScope }) => instrumentationScope);
  expect(third).toBe(one);
  expect(other).not.toBe(one);
});
