import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { SlotHold, SlotLeases } from '#shared/rates/slot-leases.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Waits } from '../limits.ts';

/** Two small requests each. */
const LOOK_EVERY_MS = 250;

interface JudgingTurnsDeps {
  leases: Pick<SlotLeases, 'acquire'>;
  waits: Pick<Waits, 'judgedElsewhereMs'>;
  log: Log;
}

/** Of the gateways that have the same delivery one judges it, since a judgement costs model calls. */
export class JudgingTurns {
  readonly #deps: JudgingTurnsDeps;

  constructor(deps: JudgingTurnsDeps) {
    this.#deps = deps;
  }

  /**
   * Judges under the delivery's lease, or resolves with what another gateway has stored. Judges without a lease when the cache is away, and when another
   * gateway takes longer than a judgement may.
   * @param key of the delivery
   * @param stored the delivery as it is stored; null: it is not
   * @param judge judges and stores it
   */
  async once<Outcome>(key: string, { stored, judge }: { stored(): Promise<Outcome | null>; judge(): Promise<Outcome> }): Promise<Outcome> {
    const { leases, waits } = this.#deps;
    const owner = randomUUID();
    const ask = () => leases.acquire(leaseOf(key), owner, 1);
    let hold = ask();
    for (let waitedMs = 0; !(await this.#isOurs(hold)) && waitedMs < waits.judgedElsewhereMs; waitedMs += LOOK_EVERY_MS) {
      await pause(LOOK_EVERY_MS);
      const found = await stored();
      if (found !== null) return found;
      hold = ask();
    }
    try {
      // The one before may have stored it and given its lease back since the last look.
      return (await stored()) ?? (await judge());
    } finally {
      hold.release();
    }
  }

  async #isOurs({ acquired }: SlotHold): Promise<boolean> {
    try {
      return await acquired;
    } catch (error) {
      this.#deps.log.warn({ reason: failureOf(error).code }, 'the cache could not be asked: a delivery may be judged by two gateways');
      return true;
    }
  }
}

function leaseOf(key: string): string {
  return `judging:${key}`;
}
