import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { NoticeBoard } from './bus.ts';
import { addresses, patternOf } from './subjects.ts';

/** How long an abort of a call that has not begun here is remembered: longer than items normally queue. */
export const RETAIN_MS = 60_000;
/** Every worker receives the aborts of all others. */
const MAX_RETAINED = 10_000;

/**
 * On `ctl.<call>`. `withdrawn`: its caller was told that the call is not made. Else no reader is left, or the actor does not wait any more. Absent from gateways of
 * the release before.
 */
const abortMessage = z.looseObject({ abort: z.literal(true), withdrawn: z.boolean().default(false) });

type AbortHandler = (isWithdrawn: boolean) => void;

interface RetainedAbort {
  untilMs: number;
  isWithdrawn: boolean;
}

/** Body of an abort. */
export function abortOf({ isWithdrawn }: { isWithdrawn: boolean }): string {
  return isWithdrawn ? '{"abort":true,"withdrawn":true}' : '{"abort":true}';
}

/** A worker's aborts on `ctl.*`, by one subscription for all its calls. */
export class ReceivedAborts {
  readonly #clock: Clock;
  readonly #subscription: { stop(): Promise<void> };
  /** Lists: an item redelivered while its first delivery is ending is the same call twice. */
  readonly #followed = new ObjectMap<readonly AbortHandler[]>();
  /** By call id, oldest first. */
  readonly #retained = new Map<string, RetainedAbort>();

  constructor({ notices, clock }: { notices: NoticeBoard; clock: Clock }) {
    this.#clock = clock;
    this.#subscription = notices.subscribe(patternOf(addresses.control), (subject, body) => {
      const { data } = abortMessage.safeParse(jsonIn(body));
      if (data !== undefined) this.#onAbort(subject.slice(subject.indexOf('.') + 1), data.withdrawn);
    });
  }

  /** Calls `onAbort` on an abort of the call, at once if one came in the last minute. @returns unsubscribes */
  follow(callId: string, onAbort: AbortHandler): () => void {
    const others = this.#followed.get(callId);
    this.#followed.set(callId, others === undefined ? [onAbort] : [...others, onAbort]);
    const retained = this.#retained.get(callId);
    if (retained !== undefined && retained.untilMs > this.#clock.nowMs()) onAbort(retained.isWithdrawn);
    return () => {
      const left = (this.#followed.get(callId) ?? []).filter((other) => other !== onAbort);
      if (left.length === 0) this.#followed.delete(callId);
      else this.#followed.set(callId, left);
    };
  }

  stop(): Promise<void> {
    return this.#subscription.stop();
  }

  #onAbort(callId: string, isWithdrawn: boolean): void {
    const followers = this.#followed.get(callId);
    if (followers !== undefined) {
      for (const onAbort of followers) onAbort(isWithdrawn);
      return;
    }
    const wasWithdrawn = this.#retained.get(callId)?.isWithdrawn ?? false;
    this.#retained.delete(callId);
    this.#retained.set(callId, { untilMs: this.#clock.nowMs() + RETAIN_MS, isWithdrawn: isWithdrawn || wasWithdrawn });
    for (const [oldest, { untilMs }] of this.#retained) {
      if (this.#retained.size <= MAX_RETAINED && untilMs > this.#clock.nowMs()) break;
      this.#retained.delete(oldest);
    }
  }
}
