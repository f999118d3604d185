import type { CommandLog } from '#bus/bus.ts';

/** One host's view of the broker; part of its heartbeat. */
export interface BrokerStatus {
  /** Length of the current period of replies without a gap. */
  sinceAgoMs: number;
  /** Time since the last reply. */
  reachedAgoMs: number;
  /** Identifies its command log (`CommandLog.state`). */
  logCreated: string;
}

interface BusContactDeps {
  commands: Pick<CommandLog, 'state'>;
  /** Replies further apart than this have a gap between them. */
  gapMs: number;
}

/**
 * Tracks when the broker last replied, by asking for the command log's state: a connection may be half open, and a broker that answers pings may
 * have no log.
 */
export class BusContact {
  readonly #deps: BusContactDeps;
  #last: { sinceMs: number; atMs: number; logCreated: string } | null = null;
  #checking: Promise<void> | null = null;

  constructor(deps: BusContactDeps) {
    this.#deps = deps;
  }

  /** Concurrent calls share one request. @throws what the bus throws after its own retry budget */
  check(): Promise<void> {
    this.#checking ??= this.#readLogState().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  /** Null before the first reply. */
  status(): BrokerStatus | null {
    if (this.#last === null) return null;
    const { sinceMs, atMs, logCreated } = this.#last;
    const nowMs = performance.now();
    return { sinceAgoMs: Math.round(nowMs - sinceMs), reachedAgoMs: Math.round(nowMs - atMs), logCreated };
  }

  async #readLogState(): Promise<void> {
    const { commands, gapMs } = this.#deps;
    const { created } = await commands.state();
    const atMs = performance.now();
    const isGap = this.#last === null || atMs - this.#last.atMs > gapMs;
    this.#last = { sinceMs: isGap ? atMs : (this.#last?.sinceMs ?? atMs), atMs, logCreated: created };
  }
}
