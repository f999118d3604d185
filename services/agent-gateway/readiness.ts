import { setTimeout as pause } from 'node:timers/promises';
import type { Bus } from '#bus/bus.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import type { Waits } from './limits.ts';

/** `unavailable`: was ready; bus or database is unreachable now. */
export type Readiness = 'booting' | 'ready' | 'unavailable' | 'draining';

interface ReadinessDeps {
  bus: Pick<Bus, 'isReady'>;
  database: Queryable;
  bundleHash: string;
  waits: Waits;
  log: Log;
}

/** Result of the readiness query: the bundle is stored; is not; no connection; timed out. */
type StoreState = 'stored' | 'missing' | 'unreachable' | 'timeout';

/** Whether requests can be served: bus connected, database responding, bundle stored. */
export class ReadinessGate {
  readonly #deps: ReadinessDeps;
  readonly #onReturn: () => void;
  #wasReady = false;
  #draining = false;
  #isUnreachable = false;
  #checking: Promise<boolean> | null = null;
  #polling: NodeJS.Timeout | null = null;

  /** @param onReturn called when the database is reachable again, since reads failed meanwhile */
  constructor(deps: ReadinessDeps, onReturn: () => void) {
    this.#deps = deps;
    this.#onReturn = onReturn;
  }

  open(): void {
    this.#polling ??= setInterval(() => void this.check(), this.#deps.waits.bootCheckMs).unref();
  }

  close(): void {
    if (this.#polling !== null) clearInterval(this.#polling);
    this.#polling = null;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  drain(): void {
    this.#draining = true;
    this.close();
  }

  async check(): Promise<Readiness> {
    if (this.#draining) return 'draining';
    this.#checking ??= this.#runCheck().finally(() => {
      this.#checking = null;
    });
    const isReady = await this.#checking;
    if (this.#draining) return 'draining';
    if (this.#wasReady) return isReady ? 'ready' : 'unavailable';
    return 'booting';
  }

  /** Resolves once requests are admitted, or refused because of a drain. @param assertWanted called between two checks: what it throws ends the wait */
  async untilReady(assertWanted: () => void = () => {}): Promise<void> {
    while ((await this.check()) === 'booting') {
      assertWanted();
      await pause(this.#deps.waits.bootCheckMs);
    }
  }

  /** Called for every request: neither queries nor waits once the gateway has been ready. `suspect` reports an unreachable database. */
  admits(): Readiness | Promise<Readiness> {
    if (this.#draining) return 'draining';
    if (!this.#wasReady) return this.check();
    return this.#deps.bus.isReady() && !this.#isUnreachable ? 'ready' : 'unavailable';
  }

  /** A statement failed with a transient error. If the database is unreachable, requests are refused until it is back. */
  suspect(): void {
    if (this.#wasReady && !this.#isUnreachable && !this.#draining) void this.check();
  }

  async #runCheck(): Promise<boolean> {
    if (!this.#deps.bus.isReady()) return false;
    const state = await this.#checkBundle();
    if (state === 'stored') this.#noteReachable();
    // A slow database causes no refusals: they would not help.
    else if (state === 'unreachable' && this.#wasReady && !this.#draining) {
      this.#isUnreachable = true;
      this.open();
    }
    return state === 'stored';
  }

  #noteReachable(): void {
    const isBack = this.#isUnreachable;
    this.#wasReady = true;
    this.#isUnreachable = false;
    this.close();
    if (isBack) this.#onReturn();
  }

  async #checkBundle(): Promise<StoreState> {
    const { database, bundleHash, waits, log } = this.#deps;
    const checked = database
      .query<{ present: number }>({ name: 'agent-gateway-bundle', text: 'select 1 as present from bundles where hash = $1' }, [bundleHash])
      .then(({ rowCount }): StoreState => (rowCount > 0 ? 'stored' : 'missing'))
      .catch((error: unknown): StoreState => {
        // Once: an unreachable database is queried several times a second.
        if (!this.#isUnreachable) log.warn({ err: error }, 'the database is unreachable');
        return 'unreachable';
      });
    return within(waits.readinessMs, checked, () => 'timeout' as const);
  }
}
