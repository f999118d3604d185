import type { Bus } from '#bus/bus.ts';
import { bodyFrame, errorFrame, sseFrame } from '#bus/messages/frame.ts';
import { type RouterCall, routerCall } from '#bus/messages/router.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { within } from '#shared/within.ts';

/** For a call to arrive from the bus. */
const CALL_MS = 10_000;
const LETTERS = { open: 'o', content: 'm', done: 'd' } as const;

/** A call for which the test acts as the worker, frame by frame. */
export interface PendingCall {
  call: RouterCall;
  delivery: number;
  /** Sends a heartbeat that names the call. */
  beat(): void;
  /** Sends raw bytes. */
  send(frame: Uint8Array): void;
  /** Sends `data: <text>` as a frame of a stream. */
  frame(kind: 'open' | 'content' | 'done', seq: number, text: string, attempt?: number): void;
  /** Sends the error frame of a stream: `{"status":…}` as the body, `data: error <status>` as the event. */
  error(seq: number, status: number, attempt?: number): void;
  body(status: number, body: unknown): void;
}

export interface ScriptedWorker {
  /** The next call from the bus. */
  next(): Promise<PendingCall>;
  /** Ids of the calls that were aborted, in order. */
  readonly aborted: readonly string[];
  /** Of those the ones whose callers were told that they are not made. */
  readonly withdrawn: readonly string[];
  stop(): Promise<void>;
}

/**
 * Takes calls off the real queue; the test scripts what follows.
 * @param isExpected false for calls to drop, as those that an earlier test left without an answer, which are sent again after a silence
 */
export function startScriptedWorker(bus: Bus, isExpected: (call: RouterCall) => boolean = () => true): ScriptedWorker {
  const calls: PendingCall[] = [];
  const waiting: ((call: PendingCall) => void)[] = [];
  const aborted: string[] = [];
  const withdrawn: string[] = [];
  const subscriptions = [
    bus.work.consume('router.call', { concurrency: 32, ackWaitMs: 60_000 }, async (item) => {
      const held = pendingCall(bus, routerCall.parse(JSON.parse(item.body)), item.deliveryCount);
      await item.ack();
      if (!isExpected(held.call)) return;
      const taker = waiting.shift();
      if (taker === undefined) calls.push(held);
      else taker(held);
    }),
    bus.notices.subscribe(patternOf(addresses.control), (subject, body) => {
      const callId = subject.slice('ctl.'.length);
      const notice = JSON.parse(body);
      if (notice.abort === true) aborted.push(callId);
      if (notice.withdrawn === true) withdrawn.push(callId);
    }),
  ];
  return {
    aborted,
    withdrawn,
    next: () => {
      const ready = calls.shift();
      if (ready !== undefined) return Promise.resolve(ready);
      return within(CALL_MS, new Promise<PendingCall>((resolve) => waiting.push(resolve)), () => {
        throw new Error('no call was put on the bus');
      });
    },
    stop: async () => {
      for (const subscription of subscriptions) await subscription.stop();
    },
  };
}

function pendingCall(bus: Bus, call: RouterCall, delivery: number): PendingCall {
  const subject = subjectOf(addresses.tokens, call.origin, call.callId);
  const send = (frame: Uint8Array) => bus.tokens.publish(subject, frame);
  return {
    call,
    delivery,
    beat: () => bus.notices.publish(subjectOf(addresses.heartbeats, call.origin), JSON.stringify({ v: 1, workerId: 'w1', question: 1, calls: [call.callId] })),
    send,
    frame: (kind, seq, text, attempt = 1) => send(sseFrame(LETTERS[kind], { callId: call.callId, attempt, seq }, `data: ${text}\n\n`)),
    error: (seq, status, attempt = 1) =>
      send(errorFrame({ callId: call.callId, attempt, seq }, status, JSON.stringify({ status }), `data: error ${status}\n\n`)),
    body: (status, body) => send(bodyFrame(status, JSON.stringify(body))),
  };
}
