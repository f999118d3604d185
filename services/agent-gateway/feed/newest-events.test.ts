import { expect, it } from 'vitest';
import { NewestEvents } from './newest-events.ts';
import type { LoggedEvent } from './session-log.ts';

const event = (offset: number, text = `{"offset":${offset}}`): LoggedEvent => ({ offset, id: `evt_${offset}`, kind: 'status', source: '', traceId: '', text });
const offsets = (events: readonly LoggedEvent[] | null) => events?.map(({ offset }) => offset) ?? null;

it('does not answer before its oldest event, nor while it is empty', () => {
  const newest = new NewestEvents();
  expect(newest.from(0)).toBeNull();

  newest.add([event(3), event(4)]);
  expect(newest.from(2)).toBeNull();
  newest.clear();
  expect(newest.from(3)).toBeNull();
});

it('begins anew behind a gap', () => {
  const newest = new NewestEvents();
  newest.add([event(0), event(1)]);
  newest.add([event(3)]);

  expect(newest.from(1)).toBeNull();
  expect(offsets(newest.from(3))).toEqual([3]);
});

it('drops the oldest beyond its limit, and stores no event that is too large by itself', () => {
  const newest = new NewestEvents();
  newest.add([event(0, 'x'.repeat(2_000)), event(1, 'x'.repeat(2_000)), event(2, 'x'.repeat(2_000))]);
  expect(newest.from(0)).toBeNull();
  expect(offsets(newest.from(1))).toEqual([1, 2]);

  newest.add([event(3, 'x'.repeat(5_000))]);
  expect(newest.from(3)).toBeNull();
  newest.add([event(4)]);
  expect(offsets(newest.from(4))).toEqual([4]);
});

it('returns all from an offset on, and nothing behind the newest', () => {
  const newest = new NewestEvents();
  newest.add([event(5), event(6)]);
  newest.add([event(7)]);

  expect(offsets(newest.from(6))).toEqual([6, 7]);
  expect(offsets(newest.from(8))).toEqual([]);
});
