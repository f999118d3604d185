import { type Clock, systemClock } from '../clock.ts';
import { type Log, silentLog } from '../telemetry/log.ts';

/** `unavailable`: it was ready, and something that it needs can't be reached now. */
type Status = 'booting' | 'ready' | 'unavailable' | 'draining';

/** Something outside that a process works with. */
export interface Check {
  name: string;
  /** Whether the process is of use without it. */
  isNeeded: boolean;
  /** Whether it is there now. Throwing, and taking too long, both mean that it is not. */
  ask(): boolean | Promise<boolean>;
}

interface ReadinessReport {
  status: Status;
  checks: Record<string, 'ok' | 'unavailable'>;
}

/** What a probe waits for a store. Orchestrators give a probe a second or a few. */
const CHECK_TIMEOUT_MS = 2_000;
/** An answer is good for so long: several who probe, or one who does it all the time, must not become work for the stores. */
const REPORT_CACHED_MS = 1_000;

export interface ReadinessDeps {
  clock?: Clock;
  log?: Log;
  checkTimeoutMs?: number;
}

/** Whether a process can do its work now: it has booted, is not leaving, and what it needs is there. Nothing is asked unless somebody asks. */
export class Readiness {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #checkTimeoutMs: number;
  #checks: readonly Check[] | null = null;
  #draining = false;
  #last: { report: ReadinessReport; atMs: number } | null = null;
  #asking: Promise<ReadinessReport> | null = null;

  constructor({ clock = systemClock, log = silentLog, checkTimeoutMs = CHECK_TIMEOUT_MS }: ReadinessDeps = {}) {
    this.#clock = clock;
    this.#log = log;
    this.#checkTimeoutMs = checkTimeoutMs;
  }

  /** The boot is over: from now on the checks decide. */
  booted(checks: readonly Check[]): void {
    this.#checks = checks;
  }

  /** It leaves: whoever sends it work should stop. */
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
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, this.#checkTimeoutMs, false);
    });
    try {
      return await Promise.race([(async () => check.ask())(), late]);
    } catch {
      return false; // why is in the log of whoever works with it
    } finally {
      clearTimeout(timer);
    }
  }
}
