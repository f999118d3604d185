import type { Clock } from '../clock.ts';

/** Repeats that come sooner are the same wish: a Ctrl-C under npm arrives twice, from the terminal and from npm, a millisecond apart. */
const REPEAT_MS = 1_000;

/** What a shell expects of a process that a signal ended: 128 and the signal's number. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

type StopSignal = keyof typeof EXIT_CODES;

export interface StopSignalDeps {
  /** Where signals come from: the process, or an emitter in tests. */
  source?: { on(signal: StopSignal, listener: () => void): unknown };
  clock?: Clock;
  exit?: (code: number) => void;
}

/** A step of the machine's clock must neither swallow a signal nor make two of one. */
const steadyClock: Clock = { nowMs: () => performance.now() };

/**
 * Resolves on the first SIGTERM or SIGINT, with its name. From then on repeats within a second are ignored, and a later signal ends the
 * process at once, with 130 or 143: who asks again does not want to wait. Called once, by the process's main file.
 */
export function stopSignal({ source = process, clock = steadyClock, exit = process.exit }: StopSignalDeps = {}): Promise<StopSignal> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null;
    const listen = (signal: StopSignal) => {
      source.on(signal, () => {
        if (firstAtMs === null) {
          firstAtMs = clock.nowMs();
          resolve(signal);
        } else if (clock.nowMs() - firstAtMs >= REPEAT_MS) exit(EXIT_CODES[signal]);
      });
    };
    listen('SIGTERM');
    listen('SIGINT');
  });
}
