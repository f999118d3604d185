import { type Clock, steadyClock } from '../clock.ts';

/** A Ctrl-C under npm arrives twice within a millisecond, from the terminal and from npm. */
const REPEAT_MS = 1_000;

/** 128 plus the signal's number, as shells do. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

type StopSignal = keyof typeof EXIT_CODES;

export interface StopSignalDeps {
  /** Default: the process. */
  source?: { on(signal: StopSignal, listener: () => void): unknown };
  clock?: Clock;
  exit?: (code: number) => void;
}

/**
 * Resolves with the first SIGTERM or SIGINT. Repeats within a second are ignored; a later one ends the process at once with 130 or 143. Call it
 * once per process.
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
