import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Requests that stay open for as long as nothing happens: how many there may be, and how to end them all when the gateway leaves. */
export class OpenReaders {
  readonly #name: string;
  readonly #most: number;
  readonly #open = new Set<() => void>();
  #draining = false;

  constructor(name: string, most: number) {
    this.#name = name;
    this.#most = most;
  }

  /**
   * @param onDrain ends the reader; called at most once, and not after it was released
   * @returns releases the place
   * @throws `service.not_ready` when all places are taken, or when the gateway is leaving
   */
  enter(onDrain: () => void): () => void {
    if (this.#draining) throw new SwitchyardError('service.not_ready', 'the server is shutting down');
    if (this.#open.size >= this.#most) throw new SwitchyardError('service.not_ready', `too many ${this.#name} are open on this server`);
    // A function of its own for each, so that two readers with the same function have two places.
    const place = () => onDrain();
    this.#open.add(place);
    return () => this.#open.delete(place);
  }

  get size(): number {
    return this.#open.size;
  }

  drain(): void {
    this.#draining = true;
    const places = [...this.#open];
    this.#open.clear();
    for (const end of places) end();
  }
}
