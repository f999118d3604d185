import type { Bus } from '#bus/bus.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
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
type StoreState = 'here' | 'missing' | 'away' | 'late';

/** Whether requests can be served: bus connected, database responding, bundle stored. */
export class ReadinessGate {
  readonly #deps: ReadinessDeps;
  readonly #onReturn: () => void;
  #wasReady = false;
  #draining = false;
  #isAway = false;
  #checking: Promise<boolean> | null = null;
  #looking: NodeJS.Timeout | null = null;

  /** @param onReturn called when the database is reachable again, since reads failed meanwhile */
  constructor(deps: ReadinessDeps, onReturn: () => void) {
    this.#deps = deps;
    this.#onReturn = onReturn;
  }

  open(): void {
    this.#looking ??= setInterval(() => void this.check(), this.#deps.waits.bootCheckMs).unref();
  }

  close(): void {
    if (this.#looking !== null) clearInterval(this.#looking);
    this.#looking = null;
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
    this.#checking ??= this.#ask().finally(() => {
      this.#checking = null;
    });
    const isReady = await this.#checking;
    if (this.#draining) return 'draining';
    if (this.#wasReady) return isReady ? 'ready' : 'unavailable';
    return 'booting';
  }

  /** Called for every request: neither queries nor waits once the gateway has been ready. `suspect` reports an unreachable database. */
  admits(): Readiness | Promise<Readiness> {
    if (this.#draining) return 'draining';
    if (!this.#wasReady) return this.check();
    return this.#deps.bus.isReady() && !this.#isAway ? 'ready' : 'unavailable';
  }

  /** A statement failed with a transient error. If the database is unreachable, requests are refused until it is back. */
  suspect(): void {
    if (this.#wasReady && !this.#isAway && !this.#draining) void this.check();
  }

  async #ask(): Promise<boolean> {
    if (!this.#deps.bus.isReady()) return false;
    const state = await this.#askDatabase();
    if (state === 'here') this.#welcome();
    // A slow database causes no refusals: they would not help.
    else if (state === 'away' && this.#wasReady && !this.#draining) {
      this.#isAway = true;
      this.open();
    }
    return state === 'here';
  }

  #welcome(): void {
    const isBack = this.#isAway;
    this.#wasReady = true;
    this.#isAway = false;
    this.close();
    if (isBack) this.#onReturn();
  }

  async #askDatabase(): Promise<StoreState> {
    const { database, bundleHash, waits, log } = this.#deps;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<StoreState>((resolve) => {
      timer = setTimeout(() => resolve('late'), waits.readinessMs);
    });
    const asked = database
      .query<{ present: number }>({ name: 'agent-gateway-bundle', text: 'select 1 as present from bundles where hash = $1' }, [bundleHash])
      .then(({ rowCount }): StoreState => (rowCount > 0 ? 'here' : 'missing'))
      .catch((error: unknown): StoreState => {
        // Once: an unreachable database is queried several times a second.
        if (!this.#isAway) log.warn({ err: error }, 'the database does not answer');
        return 'away';
      });
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
