import { type Clock, steadyClock } from '../clock.ts';
import { type Log, silentLog } from '../telemetry/log.ts';
import { within } from '../within.ts';

/** `unavailable`: booted, but a needed dependency can't be reached. */
type Status = 'booting' | 'ready' | 'unavailable' | 'draining';

/** An external dependency of the process. */
export interface Check {
  name: string;
  /** Whether the process is unready without it. */
  isNeeded: boolean;
  /** Throwing and timing out count as false. */
  ask(): boolean | Promise<boolean>;
}

interface ReadinessReport {
  status: Status;
  checks: Record<string, 'ok' | 'unavailable'>;
}

/** Orchestrators give a probe a second or a few. */
const CHECK_TIMEOUT_MS = 2_000;
/** Frequent probes must not load the stores. */
const REPORT_CACHED_MS = 1_000;

export interface ReadinessDeps {
  clock?: Clock;
  log?: Log;
  checkTimeoutMs?: number;
}

/** Readiness: booted, not draining, needed dependencies reachable. Checks run only when a report is requested. */
export class Readiness {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #checkTimeoutMs: number;
  #checks: readonly Check[] | null = null;
  #draining = false;
  #last: { report: ReadinessReport; atMs: number } | null = null;
  #asking: Promise<ReadinessReport> | null = null;

  constructor({ clock = steadyClock, log = silentLog, checkTimeoutMs = CHECK_TIMEOUT_MS }: ReadinessDeps = {}) {
    this.#clock = clock;
    this.#log = log;
    this.#checkTimeoutMs = checkTimeoutMs;
  }

  /** The checks decide from then on. */
  booted(checks: readonly Check[]): void {
    this.#checks = checks;
  }

  /** No new work should be sent here from then on. */
  drain(): void {
    this.#draining = true;
  }

  async report(): Promise<ReadinessReport> {
    if (this.#checks === null) return { status: this.#draining ? 'draining' : 'booting', checks: {} };
    const { status, checks } = await this.#current(this.#checks);
    return { status: this.#draining ? 'draining' : status, checks };
  }

  async #current(checks: readonly Check[]): Promise<ReadinessReport> {
    if (this.#last !== null && this.#clock.nowMs() - this.#last.atMs < REPORT_CACHED_MS) return this.#last.report;
    this.#asking ??= this.#ask(checks).finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #ask(checks: readonly Check[]): Promise<ReadinessReport> {
    const answers = await Promise.all(checks.map(async (check) => ({ check, isThere: await this.#isThere(check) })));
    const status = answers.every(({ check, isThere }) => isThere || !check.isNeeded) ? 'ready' : 'unavailable';
    const report: ReadinessReport = { status, checks: Object.fromEntries(answers.map(({ check, isThere }) => [check.name, isThere ? 'ok' : 'unavailable'])) };
    const before = this.#last?.report;
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(report)) this.#log.warn({ ...report }, 'readiness has changed');
    this.#last = { report, atMs: this.#clock.nowMs() };
    return report;
  }

  async #isThere(check: Check): Promise<boolean> {
    try {
      return await within(this.#checkTimeoutMs, (async () => check.ask())(), () => false);
    } catch {
      return false; // its other callers log the cause
    }
  }
}
