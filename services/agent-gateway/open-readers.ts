import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';

/** A bounded set of open long-polls or streams that a drain can end. */
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
   * @param onDrain ends the reader; called at most once, never after release
   * @returns releases the slot
   * @throws `service.not_ready` when all slots are taken or the gateway drains
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
