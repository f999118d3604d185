import { expect, it } from 'vitest';
import { traceparentOf } from './traceparent.ts';

const TRACE = 'a'.repeat(32);
const PARENT = 'b'.repeat(16);

it.each([
  ['nothing', undefined],
  ['an empty text', ''],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
  ['a parent of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['the version that there is not', `ff-${TRACE}-${PARENT}-01`],
  ['capitals', `00-${'A'.repeat(32)}-${PARENT}-01`],
  ['a trace that is too short', `00-${TRACE.slice(1)}-${PARENT}-01`],
])('ignores %s', (_case, traceparent) => {
  expect(traceparentOf(traceparent === undefined ? {} : { traceparent })).toBeNull();
});

it.each([`00-${TRACE}-${PARENT}-01`, `cc-${TRACE}-${PARENT}-00`])('takes %s', (traceparent) => {
  expect(traceparentOf({ traceparent })).toBe(traceparent);
});
