import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { NoticeBoard } from './bus.ts';
import { addresses, patternOf } from './subjects.ts';

/** How long an abort or a resumption of a call that has not begun here is remembered: longer than items normally queue. */
export const RETAIN_MS = 60_000;
/** Calls. Every worker receives the notices of all others. */
const MAX_RETAINED = 10_000;

/**
 * On `ctl.<call>`. `withdrawn`: its caller was told that the call is not made. Else no reader is left, or the actor does not wait any more. `from`: the gateway that
 * has no reader; absent from actors' hosts. Both are absent from gateways of the release before.
 */
const abortMessage = z.looseObject({ abort: z.literal(true), withdrawn: z.boolean().default(false), from: z.string().nullable().default(null) });
/** On `ctl.<call>`: a client has resumed the call at the gateway `from`. Workers of the release before ignore it. */
const resumptionMessage = z.looseObject({ resumed: z.literal(true), from: z.string() });

export interface Abort {
  isWithdrawn: boolean;
  /** The gateway that has no reader of the call. Null: unknown, or no gateway. */
  from: string | null;
}

export interface AbortHandler {
  onAbort(abort: Abort): void;
  /** @param from the gateway at which a client has resumed the call */
  onResumed?(from: string): void;
}

interface Retained {
  untilMs: number;
  /** The last notice of each gateway, but for a call that it has withdrawn. */
  byGateway: Map<string | null, 'aborted' | 'withdrawn' | 'resumed'>;
}

/** Body of an abort. */
export function abortOf({ isWithdrawn, from }: Abort): string {
  return JSON.stringify({ abort: true, withdrawn: isWithdrawn || undefined, from: from ?? undefined });
}

/** Body of a notice that a client has resumed the call. */
export function resumptionOf(from: string): string {
  return JSON.stringify({ resumed: true, from });
}

/** A worker's aborts on `ctl.*`, by one subscription for all its calls. */
export class ReceivedAborts {
  readonly #clock: Clock;
  readonly #subscription: { stop(): Promise<void> };
  /** Lists: an item redelivered while its first delivery is ending is the same call twice. */
  readonly #followed = new ObjectMap<readonly AbortHandler[]>();
  /** By call id, oldest first. */
  readonly #retained = new Map<string, Retained>();

  constructor({ notices, clock }: { notices: NoticeBoard; clock: Clock }) {
    this.#clock = clock;
    this.#subscription = notices.subscribe(patternOf(addresses.control), (subject, body) => {
      const notice = jsonIn(body);
      const callId = subject.slice(subject.indexOf('.') + 1);
      const { data: abort } = abortMessage.safeParse(notice);
      if (abort !== undefined) return this.#onAbort(callId, { isWithdrawn: abort.withdrawn, from: abort.from });
      const { data: resumption } = resumptionMessage.safeParse(notice);
      if (resumption !== undefined) this.#onResumed(callId, resumption.from);
    });
  }

  /** Notifies of aborts and resumptions of the call, at once of those of the last minute: first of the readers that are left. @returns unsubscribes */
  follow(callId: string, handler: AbortHandler): () => void {
    const others = this.#followed.get(callId);
    this.#followed.set(callId, others === undefined ? [handler] : [...others, handler]);
    const retained = this.#retained.get(callId);
    if (retained !== undefined && retained.untilMs > this.#clock.nowMs()) {
      for (const [from, last] of retained.byGateway) if (last === 'resumed' && from !== null) handler.onResumed?.(from);
      for (const [from, last] of retained.byGateway) if (last !== 'resumed') handler.onAbort({ isWithdrawn: last === 'withdrawn', from });
    }
    return () => {
      const left = (this.#followed.get(callId) ?? []).filter((other) => other !== handler);
      if (left.length === 0) this.#followed.delete(callId);
      else this.#followed.set(callId, left);
    };
  }

  stop(): Promise<void> {
    return this.#subscription.stop();
  }

  #onAbort(callId: string, abort: Abort): void {
    const followers = this.#followed.get(callId);
    if (followers === undefined) this.#retain(callId, abort.from, abort.isWithdrawn ? 'withdrawn' : 'aborted');
    else for (const { onAbort } of followers) onAbort(abort);
  }

  #onResumed(callId: string, from: string): void {
    const followers = this.#followed.get(callId);
    if (followers === undefined) this.#retain(callId, from, 'resumed');
    else for (const { onResumed } of followers) onResumed?.(from);
  }

  #retain(callId: string, from: string | null, notice: 'aborted' | 'withdrawn' | 'resumed'): void {
    const byGateway: Retained['byGateway'] = this.#retained.get(callId)?.byGateway ?? new Map();
    if (byGateway.get(from) !== 'withdrawn') byGateway.set(from, notice);
    this.#retained.delete(callId);
    this.#retained.set(callId, { untilMs: this.#clock.nowMs() + RETAIN_MS, byGateway });
    for (const [oldest, { untilMs }] of this.#retained) {
      if (this.#retained.size <= MAX_RETAINED && untilMs > this.#clock.nowMs()) break;
      this.#retained.delete(oldest);
    }
  }
}
