import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';

/** Requests that stay open for as long as nothing happens: how many there may be, and how to end them all when the gateway leaves. */
export class OpenReaders {
  readonly #name: string;
  readonly #most: number;
  #open = new SlotMap<() => void>();
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
    const open = this.#open;
    let slot: number | null = open.add(onDrain);
    return () => {
      if (slot !== null) open.remove(slot);
      slot = null;
    };
  }

  get size(): number {
    return this.#open.size;
  }

  drain(): void {
    this.#draining = true;
    const open = this.#open;
    this.#open = new SlotMap();
    for (const end of open.values()) end();
  }
}
