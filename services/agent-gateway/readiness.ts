import type { Bus } from '#bus/bus.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Waits } from './limits.ts';

/** `unavailable`: was ready, and can't reach the bus or the database now. */
export type Readiness = 'booting' | 'ready' | 'unavailable' | 'draining';

interface ReadinessDeps {
  bus: Pick<Bus, 'isReady'>;
  database: Queryable;
  bundleHash: string;
  waits: Waits;
  log: Log;
}

/** What the database said: it has the configuration, has it not, can't be reached, or has not answered in time. */
type StoreState = 'here' | 'missing' | 'away' | 'late';

/** Whether requests can be served: the bus is there, the database answers, and the configuration that turns run on is stored. */
export class ReadinessGate {
  readonly #deps: ReadinessDeps;
  readonly #onReturn: () => void;
  #wasReady = false;
  #draining = false;
  /** The database could not be reached when it was last asked. */
  #isAway = false;
  #checking: Promise<boolean> | null = null;
  #looking: NodeJS.Timeout | null = null;

  /** @param onReturn called when the database is back after it was away: what was to be read meanwhile was not */
  constructor(deps: ReadinessDeps, onReturn: () => void) {
    this.#deps = deps;
    this.#onReturn = onReturn;
  }

  /** Looks until the gateway is ready, so that it is so without being asked. */
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

  /** Asks bus and database. */
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

  /** For every request, so without a query, and without a wait, once the gateway has been ready: a database that is away shows by itself, in `suspect`. */
  admits(): Readiness | Promise<Readiness> {
    if (this.#draining) return 'draining';
    if (!this.#wasReady) return this.check();
    return this.#deps.bus.isReady() && !this.#isAway ? 'ready' : 'unavailable';
  }

  /** A statement has failed, and it was not its own fault. If the database is away, nobody is let in until it is back. */
  suspect(): void {
    if (this.#wasReady && !this.#isAway && !this.#draining) void this.check();
  }

  async #ask(): Promise<boolean> {
    if (!this.#deps.bus.isReady()) return false;
    const state = await this.#askDatabase();
    if (state === 'here') this.#welcome();
    // One that is merely slow refuses nobody: those who wait for it would be no better off.
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
        // Said once: while it is away it is asked several times a second.
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
