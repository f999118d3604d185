import type { Living } from '#shared/config/living.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { OpenedSetup, RouterSetup } from './router-setup.ts';

/** Gateways read the file at their own moments: so long calls may arrive that were admitted under a configuration that is no longer this worker's. */
const FORMER_MS = 600_000;
/** Each is as large as the models of its file. */
const MAX_FORMER = 4;

interface SetupsDeps {
  setup: Living<OpenedSetup>;
  log: Log;
  formerMs?: number;
  maxFormer?: number;
}

/** A setup in use by one call. */
export interface EnteredSetup {
  readonly setup: RouterSetup;
  /** Whether it is that of the hash, or the call names none. */
  readonly isKnown: boolean;
  /** Once. */
  leave(): void;
}

/** The setups that calls of this worker may use: the current one and the last former ones. One that was dropped is closed with the last call that uses it. */
export class Setups {
  readonly #deps: SetupsDeps;
  readonly #unregister: () => void;
  readonly #listeners = new Set<() => void>();
  #current: KeptSetup;
  /** Newest first. */
  #former: KeptSetup[] = [];

  constructor(deps: SetupsDeps) {
    this.#deps = deps;
    this.#current = new KeptSetup(deps.setup.current(), deps.log);
    this.#unregister = deps.setup.onChange((next) => this.#replace(next));
  }

  /** @param hash of the configuration that the call was admitted under; absent, or not known here: the current one */
  enter(hash: string | undefined): EnteredSetup {
    const kept = this.#keptOf(hash);
    return (kept ?? this.#current).enter(kept !== undefined);
  }

  /** For a look; it may be closed at any time. */
  find(hash: string | undefined): Pick<EnteredSetup, 'setup' | 'isKnown'> {
    const kept = this.#keptOf(hash);
    return { setup: (kept ?? this.#current).setup, isKnown: kept !== undefined };
  }

  /** @returns unregisters the listener */
  onReplaced(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Closes all, those in use too. */
  async stop(): Promise<void> {
    this.#unregister();
    await Promise.all([this.#current, ...this.#former].map((kept) => kept.close()));
    this.#former = [];
  }

  #keptOf(hash: string | undefined): KeptSetup | undefined {
    if (hash === undefined || hash === this.#current.setup.hash) return this.#current;
    return this.#former.find(({ setup }) => setup.hash === hash);
  }

  #replace(next: OpenedSetup): void {
    const { formerMs = FORMER_MS, maxFormer = MAX_FORMER } = this.#deps;
    const replaced = this.#current;
    this.#current = new KeptSetup(next, this.#deps.log);
    this.#former.unshift(replaced);
    replaced.dropAfter(formerMs, () => {
      this.#former = this.#former.filter((kept) => kept !== replaced);
    });
    for (const oldest of this.#former.splice(maxFormer)) oldest.drop();
    for (const listener of this.#listeners) listener();
  }
}

class KeptSetup {
  readonly setup: OpenedSetup;
  readonly #log: Log;
  #calls = 0;
  #isDropped = false;
  #timer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | null = null;

  constructor(setup: OpenedSetup, log: Log) {
    this.setup = setup;
    this.#log = log;
  }

  enter(isKnown: boolean): EnteredSetup {
    this.#calls += 1;
    const leave = () => {
      this.#calls -= 1;
      if (this.#isDropped) this.#closeUnused();
    };
    return { setup: this.setup, isKnown, leave };
  }

  dropAfter(ms: number, onDropped: () => void): void {
    this.#timer = setTimeout(() => {
      onDropped();
      this.drop();
    }, ms).unref();
  }

  drop(): void {
    clearTimeout(this.#timer);
    this.#isDropped = true;
    this.#closeUnused();
  }

  close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closing ??= this.setup.close();
    return this.#closing;
  }

  #closeUnused(): void {
    if (this.#calls > 0) return;
    this.close().catch((error: unknown) => this.#log.warn({ err: error }, 'the connections of a former configuration could not be closed'));
  }
}
