import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { NoticeBoard } from './bus.ts';
import { addresses, patternOf } from './subjects.ts';

/** How long an abort is remembered for a call that has not begun here: longer than an item waits in its queue when all is well. */
export const RETAIN_MS = 60_000;
/** Aborts remembered. They are rare, but every worker hears those of all others. */
const MAX_RETAINED = 10_000;

const abortMessage = z.looseObject({ abort: z.literal(true) });

/** What a worker hears on `ctl.*`: one standing subscription for all its calls. */
export class ReceivedAborts {
  readonly #clock: Clock;
  readonly #subscription: { stop(): Promise<void> };
  /** An item that was delivered again while the first worker still lets go of it is the same call twice. */
  readonly #followed = new ObjectMap<readonly (() => void)[]>();
  /** Until when each is remembered, the oldest first. */
  readonly #retained = new Map<string, number>();

  constructor({ notices, clock }: { notices: NoticeBoard; clock: Clock }) {
    this.#clock = clock;
    this.#subscription = notices.subscribe(patternOf(addresses.control), (subject, body) => {
      if (isAbort(body)) this.#onAbort(subject.slice(subject.indexOf('.') + 1));
    });
  }

  /** Tells of aborts of a call that begins, at once when one has come in the last minute. @returns what ends it: the call is over */
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
