import { afterEach, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { type RouterCall, routerCall } from '#bus/messages/router.ts';
import { InvalidItem } from '#services/work/item-kind.ts';
import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { callItems } from './call-items.ts';
import { CallWatch } from './call-watch.ts';
import { testNoticeBoard } from './test-support/notice-board.ts';

const clock = { nowMs: () => 7_200_000 };
const actorClock = { nowMs: () => 3_600_000 };
const bus = { notices: testNoticeBoard(), isReady: () => true, onReconnect: () => ({ stop: async () => {} }) } as unknown as Bus;
const watch = new CallWatch({ bus, clock });
afterEach(() => watch.stop());

const deps = { bus, clock, actorClock, log: silentLog, metrics: noMetrics, tracing: noTracing, watch };
const kind = callItems('router.turn', { concurrency: 1, bodyBytes: 1 }, deps as unknown as Parameters<typeof callItems>[2]);
const message = {
  v: 1,
  callId: 'c',
  origin: 'gw1',
  want: 'body',
  deadlineAtMs: 3_601_000,
  createdAtMs: 0,
  keyId: 'k',
  traceparent: null,
  maxTokens: null,
  request: { messages: [{ role: 'user', content: 'Hello' }] },
  reply: null,
};

it('counts the time of an actor’s call by the clock of actors, and that of a client’s by its own', () => {
  const call: RouterCall = routerCall.parse(message);
  const reply = { sessionId: 'ses_1', ...actorFields('trn_1') };
  expect(kind.remainingMs({ call, surface: chatCompletions, framesAt: '' })).toBeLessThan(0);
  expect(kind.remainingMs({ call: { ...call, reply }, surface: chatCompletions, framesAt: '' })).toBe(1_000);
});

it('leaves a call of a surface that it does not have to a worker of a later release', () => {
  expect(kind.parse({ ...message, surface: 'chat-completions' }, null)).toMatchObject({ surface: chatCompletions });
  expect(kind.parse({ ...message, surface: 'of-a-later-release' }, null)).toBeNull();
  expect(kind.parse({ ...message, origin: 'no.token' }, null)).toBeInstanceOf(InvalidItem);
});
