import { expect, it } from 'vitest';
import { recordingTracing } from '#shared/telemetry/test-support/recording-tracing.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { itemSpan } from './item-span.ts';

it('is none without tracing, and none of what is not recorded', () => {
  const trace = { name: 'x', kind: 'client', scope: 'switchyard', attributes: {} } as const;
  const item = { id: 'e', number: 1, mayBeSecond: false, parent: null };
  expect(itemSpan(noTracing, trace, item)).toBeNull();
  expect(itemSpan(recordingTracing(), null, item)).toBeNull();
  expect(itemSpan(recordingTracing(), trace, item)).not.toBeNull();
});
