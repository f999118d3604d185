import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Keeping, Listening, TokenStream } from '../bus.ts';
import { PubSub } from './pub-sub.ts';
import type { Closable, PartDeps } from './types.ts';

/** How long a reader can look back. */
const REPLAY_MS = 120_000;
/** All frames kept. Sized never to be reached in a small deployment: 1,000 calls of 64 KiB; past it the oldest frames go first. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
/** What a kept frame costs beside its bytes: an entry and its places in two arrays. */
const FRAME_OVERHEAD_BYTES = 128;
/** Frames already dropped that the list may still have places for, before it is copied to a shorter one. */
const COMPACT_AFTER = 4_096;

interface KeptFrame {
  kept: KeptSubject;
  sizeBytes: number;
  atMs: number;
}

interface KeptSubject {
  subject: string;
  /** Frames in order; those before `first` are dropped already, and null. */
  frames: (Uint8Array | null)[];
  first: number;
}

/** Tokens in process: handed out live, and kept for two minutes. */
export function openTokenStream({ clock, log }: PartDeps): TokenStream & Closable {
  return new MemoryTokenStream(clock, new PubSub<Uint8Array>(log));
}

class MemoryTokenStream implements TokenStream, Closable {
  readonly #clock: Clock;
  readonly #live: PubSub<Uint8Array>;
  readonly #subjects = new Map<string, KeptSubject>();
  /** All kept frames of all subjects, oldest first; those before `#oldest` are dropped already. */
  #order: (KeptFrame | null)[] = [];
  #oldest = 0;
  #keptBytes = 0;
  #closed = false;

  constructor(clock: Clock, live: PubSub<Uint8Array>) {
    this.#clock = clock;
    this.#live = live;
  }

  publish(subject: string, frame: Uint8Array, keeping: Keeping = 'at once'): void {
    if (this.#closed) return;
    if (keeping !== 'no more') this.#keep(subject, frame);
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

  #keep(subject: string, frame: Uint8Array): void {
    const sizeBytes = frame.byteLength + FRAME_OVERHEAD_BYTES;
    if (sizeBytes > MAX_KEPT_BYTES) return;
    let kept = this.#subjects.get(subject);
    if (kept === undefined) {
      kept = { subject, frames: [], first: 0 };
      this.#subjects.set(subject, kept);
    }
    const nowMs = this.#clock.nowMs();
    kept.frames.push(frame);
    this.#order.push({ kept, sizeBytes, atMs: nowMs });
    this.#keptBytes += sizeBytes;
    this.#dropOld(nowMs);
  }

  /** Looks only at the oldest frames, so it costs as much as it drops. */
  #dropOld(nowMs: number): void {
    for (let entry = this.#order[this.#oldest]; entry != null; entry = this.#order[this.#oldest]) {
      if (entry.atMs > nowMs - REPLAY_MS && this.#keptBytes <= MAX_KEPT_BYTES) break;
      this.#order[this.#oldest] = null;
      this.#oldest += 1;
      this.#keptBytes -= entry.sizeBytes;
      this.#dropFirstOf(entry.kept);
    }
    if (this.#oldest < COMPACT_AFTER || this.#oldest < this.#order.length / 2) return;
    this.#order = this.#order.slice(this.#oldest);
    this.#oldest = 0;
  }

  /** The oldest frame of all is the oldest of its subject. */
  #dropFirstOf(kept: KeptSubject): void {
    kept.frames[kept.first] = null;
    kept.first += 1;
    if (kept.first === kept.frames.length) this.#subjects.delete(kept.subject);
    else if (kept.first >= COMPACT_AFTER && kept.first >= kept.frames.length / 2) {
      kept.frames = kept.frames.slice(kept.first);
      kept.first = 0;
    }
  }
}
