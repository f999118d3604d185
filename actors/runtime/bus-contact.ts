import type { CommandLog } from '#bus/bus.ts';

/** What a host knows of the broker, in its heartbeat. */
export interface BrokerStatus {
  /** For how long the broker has answered without a gap. */
  sinceAgoMs: number;
  /** How long ago it last did. */
  reachedAgoMs: number;
  /** Names the command log that it has (`CommandLog.state`). */
  logCreated: string;
}

interface BusContactDeps {
  commands: Pick<CommandLog, 'state'>;
  /** Two answers that are further apart have a gap between them. */
  gapMs: number;
}

/**
 * Knows when the broker last answered this process. Asked is how the command log stands: a connection may be open and half dead, and a
 * broker that answers pings may have no log.
 */
export class BusContact {
  readonly #deps: BusContactDeps;
  #last: { sinceMs: number; atMs: number; logCreated: string } | null = null;
  #asking: Promise<void> | null = null;

  constructor(deps: BusContactDeps) {
    this.#deps = deps;
  }

  /** Resolves when the broker has answered; one question at a time. @throws what the bus throws when it does not, after the bus's own budget */
  ask(): Promise<void> {
    this.#asking ??= this.#question().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** Null before the first answer. */
  status(): BrokerStatus | null {
    if (this.#last === null) return null;
    const { sinceMs, atMs, logCreated } = this.#last;
    const nowMs = performance.now();
    return { sinceAgoMs: Math.round(nowMs - sinceMs), reachedAgoMs: Math.round(nowMs - atMs), logCreated };
  }

  async #question(): Promise<void> {
    const { commands, gapMs } = this.#deps;
    const { created } = await commands.state();
    const atMs = performance.now();
    const isGap = this.#last === null || atMs - this.#last.atMs > gapMs;
    this.#last = { sinceMs: isGap ? atMs : (this.#last?.sinceMs ?? atMs), atMs, logCreated: created };
  }
}
