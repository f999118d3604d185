import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Listening, TokenStream } from '../bus.ts';
import { treatmentOf } from '../messages/retention.ts';
import { PubSub } from '../pub-sub.ts';
import type { Closable, ComponentDeps } from './types.ts';

const REPLAY_MS = 120_000;
/** 1,000 calls of 64 KiB. Past it the oldest frames are dropped. */
const MAX_RETAINED_BYTES = 64 * 1024 * 1024;
/** An object and two array slots. */
const FRAME_OVERHEAD_BYTES = 128;
/** Dropped slots before a list is compacted. */
const COMPACT_AFTER = 4_096;

interface RetainedFrame {
  retained: RetainedSubject;
  sizeBytes: number;
  atMs: number;
}

interface RetainedSubject {
  subject: string;
  /** Those before `first` are dropped, and null. */
  frames: (Uint8Array | null)[];
  first: number;
}

/** Tokens in process: live delivery, and replay for two minutes. */
export function openTokenStream({ clock, log }: ComponentDeps): TokenStream & Closable {
  return new MemoryTokenStream(clock, new PubSub<Uint8Array>(log));
}

class MemoryTokenStream implements TokenStream, Closable {
  readonly #clock: Clock;
  readonly #live: PubSub<Uint8Array>;
  readonly #subjects = new Map<string, RetainedSubject>();
  /** Of all subjects, oldest first; those before `#oldest` are dropped, and null. */
  #order: (RetainedFrame | null)[] = [];
  #oldest = 0;
  #retainedBytes = 0;
  #closed = false;

  constructor(clock: Clock, live: PubSub<Uint8Array>) {
    this.#clock = clock;
    this.#live = live;
  }

  publish(subject: string, frame: Uint8Array): void {
    if (this.#closed) return;
    if (treatmentOf(frame).retention !== 'no more') this.#retain(subject, frame);
    this.#live.publish(subject, frame);
  }

  subscribe(pattern: string, handler: (subject: string, frame: Uint8Array) => void): Listening {
    return this.#live.subscribe(pattern, handler);
  }

  async replay(subject: string): Promise<Uint8Array[]> {
    if (this.#closed) throw new SwitchyardError('bus.closed', 'the bus is closed');
    this.#dropOld(this.#clock.nowMs());
    return this.#subjects.get(subject)?.frames.filter((frame) => frame !== null) ?? [];
  }

  async stopReaders(): Promise<void> {}

  async shut(): Promise<void> {
    this.#closed = true;
    this.#live.close();
    this.#subjects.clear();
    this.#order = [];
    this.#oldest = 0;
  }

  #retain(subject: string, frame: Uint8Array): void {
    const sizeBytes = frame.byteLength + FRAME_OVERHEAD_BYTES;
    if (sizeBytes > MAX_RETAINED_BYTES) return;
    let retained = this.#subjects.get(subject);
    if (retained === undefined) {
      retained = { subject, frames: [], first: 0 };
      this.#subjects.set(subject, retained);
    }
    const nowMs = this.#clock.nowMs();
    retained.frames.push(frame);
    this.#order.push({ retained, sizeBytes, atMs: nowMs });
    this.#retainedBytes += sizeBytes;
    this.#dropOld(nowMs);
  }

  /** Looks at the oldest frames only: the cost is that of what it drops. */
  #dropOld(nowMs: number): void {
    for (let entry = this.#order[this.#oldest]; entry != null; entry = this.#order[this.#oldest]) {
      if (entry.atMs > nowMs - REPLAY_MS && this.#retainedBytes <= MAX_RETAINED_BYTES) break;
      this.#order[this.#oldest] = null;
      this.#oldest += 1;
      this.#retainedBytes -= entry.sizeBytes;
      this.#dropFirstOf(entry.retained);
    }
    if (this.#oldest < COMPACT_AFTER || this.#oldest < this.#order.length / 2) return;
    this.#order = this.#order.slice(this.#oldest);
    this.#oldest = 0;
  }

  /** The oldest of all is also the oldest of its subject. */
  #dropFirstOf(retained: RetainedSubject): void {
    retained.frames[retained.first] = null;
    retained.first += 1;
    if (retained.first === retained.frames.length) this.#subjects.delete(retained.subject);
    else if (retained.first >= COMPACT_AFTER && retained.first >= retained.frames.length / 2) {
      retained.frames = retained.frames.slice(retained.first);
      retained.first = 0;
    }
  }
}
