import type { Listening, TokenStream } from '../../../bus/bus.ts';
import { RETAINED_WITHIN_MS, treatmentOf } from '../../../bus/messages/retention.ts';
import { pauseFor } from '../../../bus/pause.ts';
import type { ModelBroker } from '../model-broker.ts';
import { askerOf, type BusOptions } from '../model-bus.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import type { Wire } from './wire.ts';

const RETENTION_MS = 120_000;

interface Reader {
  process: Process;
  key: string;
  prefix: string;
  isExact: boolean;
  handler(subject: string, frame: Uint8Array): void;
}

/** The broker's part of the frames: live to readers, some of which miss one, and in memory for a replay. */
export class ModelTokens {
  readonly #scheduler: Scheduler;
  readonly #broker: ModelBroker;
  readonly #stored = new Map<string, { frame: Uint8Array; atMs: number }[]>();
  #readers: Reader[] = [];
  readonly #onFrame: (subject: string, frame: Uint8Array) => void;

  /** @param onFrame called with each frame that the broker gets */
  constructor(scheduler: Scheduler, broker: ModelBroker, onFrame: (subject: string, frame: Uint8Array) => void) {
    this.#scheduler = scheduler;
    this.#broker = broker;
    this.#onFrame = onFrame;
  }

  live(subject: string, frame: Uint8Array): void {
    this.#onFrame(subject, frame);
    for (const { process, key, prefix, isExact, handler } of this.#readers) {
      if (this.#broker.isCutOff(process) || (isExact ? subject !== prefix : !subject.startsWith(prefix))) continue;
      this.#scheduler.post(process, key, 'gets a frame', () => handler(subject, frame));
    }
  }

  store(subject: string, frames: readonly Uint8Array[]): void {
    const stored = this.#stored.get(subject) ?? [];
    for (const frame of frames) stored.push({ frame, atMs: this.#scheduler.nowMs });
    this.#stored.set(subject, stored);
  }

  replay(subject: string): Uint8Array[] {
    const sinceMs = this.#scheduler.nowMs - RETENTION_MS;
    return (this.#stored.get(subject) ?? []).filter(({ atMs }) => atMs > sinceMs).map(({ frame }) => frame);
  }

  listen(process: Process, pattern: string, handler: Reader['handler']): () => void {
    const isExact = !pattern.includes('*');
    const prefix = isExact ? pattern : pattern.slice(0, pattern.indexOf('*'));
    const reader: Reader = { process, key: this.#broker.nextKey('tok'), prefix, isExact, handler };
    this.#readers.push(reader);
    return () => {
      this.#readers = this.#readers.filter((one) => one !== reader);
    };
  }

  forget(process: Process): void {
    this.#readers = this.#readers.filter((one) => one.process !== process);
  }

  /** The stream is in memory. */
  restart(): void {
    this.#stored.clear();
  }
}

/** One process's frames. Those that may be stored late are lost with the process. */
export function tokenStreamOf(options: BusOptions, tokens: ModelTokens, wire: Wire): TokenStream {
  const { process } = options;
  const ask = askerOf(options);
  const late = new Map<string, Uint8Array[]>();
  const storeLate = (subject: string) => {
    const frames = late.get(subject);
    late.delete(subject);
    if (frames !== undefined) wire.send(process, () => tokens.store(subject, frames));
  };
  return {
    publish(subject, frame) {
      const { retention } = treatmentOf(frame);
      if (retention === 'no more') late.delete(subject);
      if (retention !== 'soon') storeLate(subject);
      else if (late.has(subject)) late.get(subject)?.push(frame);
      else {
        late.set(subject, [frame]);
        setTimeout(() => storeLate(subject), RETAINED_WITHIN_MS / 2);
      }
      wire.send(process, () => {
        if (retention === 'at once') tokens.store(subject, [frame]);
        tokens.live(subject, frame);
      });
    },
    subscribe(pattern, handler): Listening {
      const stop = tokens.listen(process, pattern, handler);
      return { ready: async () => {}, stop: async () => stop() };
    },
    async replay(subject, upTo = 'kept') {
      if (upTo === 'now') await pauseFor(RETAINED_WITHIN_MS);
      return ask('replay', () => tokens.replay(subject));
    },
  };
}
