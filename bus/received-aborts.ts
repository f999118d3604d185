import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { NoticeBoard } from './bus.ts';
import { addresses, patternOf } from './subjects.ts';

/** How long an abort of a call that has not begun here is remembered: longer than items normally queue. */
export const RETAIN_MS = 60_000;
/** Every worker receives the aborts of all others. */
const MAX_RETAINED = 10_000;

const abortMessage = z.looseObject({ abort: z.literal(true) });

/** A worker's aborts on `ctl.*`, by one subscription for all its calls. */
export class ReceivedAborts {
  readonly #clock: Clock;
  readonly #subscription: { stop(): Promise<void> };
  /** Lists: an item redelivered while its first delivery is ending is the same call twice. */
  readonly #followed = new ObjectMap<readonly (() => void)[]>();
  /** Expiry by call id, oldest first. */
  readonly #retained = new Map<string, number>();

  constructor({ notices, clock }: { notices: NoticeBoard; clock: Clock }) {
    this.#clock = clock;
    this.#subscription = notices.subscribe(patternOf(addresses.control), (subject, body) => {
      if (isAbort(body)) this.#onAbort(subject.slice(subject.indexOf('.') + 1));
    });
  }

  /** Calls `onAbort` on an abort of the call, at once if one came in the last minute. @returns unsubscribes */
  follow(callId: string, onAbort: () => void): () => void {
    const others = this.#followed.get(callId);
    this.#followed.set(callId, others === undefined ? [onAbort] : [...others, onAbort]);
    const untilMs = this.#retained.get(callId);
    if (untilMs !== undefined && untilMs > this.#clock.nowMs()) onAbort();
    return () => {
      const left = (this.#followed.get(callId) ?? []).filter((other) => other !== onAbort);
      if (left.length === 0) this.#followed.delete(callId);
      else this.#followed.set(callId, left);
    };
  }

  stop(): Promise<void> {
    return this.#subscription.stop();
  }

  #onAbort(callId: string): void {
    const followers = this.#followed.get(callId);
    if (followers !== undefined) {
      for (const onAbort of followers) onAbort();
      return;
    }
    this.#retained.delete(callId);
    this.#retained.set(callId, this.#clock.nowMs() + RETAIN_MS);
    for (const [oldest, untilMs] of this.#retained) {
      if (this.#retained.size <= MAX_RETAINED && untilMs > this.#clock.nowMs()) break;
      this.#retained.delete(oldest);
    }
  }
}

function isAbort(body: string): boolean {
  try {
    return abortMessage.safeParse(JSON.parse(body)).success;
  } catch {
    return false;
  }
}
