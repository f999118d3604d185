/** Where a turn can be held: in the check of its message, a question to the model, a call of a tool, the search, or the reply. */
export const phases = [
  ...(['moderating', 'matching', 'routine', 'inferring', 'booking', 'looking'] as const),
  ...(['retrieving', 'composing', 'streaming', 'checking', 'tracking'] as const),
] as const;
export type Phase = (typeof phases)[number];

/** A customer's key: its number, and the phase in which its turn is held. */
const KEY = /K-\d+-([a-z]+)/;

/** The newest key in a text; empty: there is none. */
export function keyIn(text: string): string {
  return [...text.matchAll(new RegExp(KEY, 'g'))].at(-1)?.[0] ?? '';
}

/** Holds requests of upstreams until the test goes on. */
export class Gates {
  /** Requests that are held now, by key; with 0 those that were. */
  readonly #held = new Map<string, number>();
  readonly #opened: Promise<void>[] = [];
  #open = () => {};

  constructor() {
    this.close();
  }

  /** Waits if the turn of this key is to be held here. @param onHeld called if so, before the wait */
  async pass(phase: Phase, key: string, onHeld = () => {}): Promise<void> {
    if (KEY.exec(key)?.[1] !== phase) return;
    const opened = this.#opened.at(-1);
    onHeld();
    this.#held.set(key, this.held(key) + 1);
    await opened;
    this.#held.set(key, this.held(key) - 1);
  }

  /** Whether its turn is held now, or was. */
  hasEntered(key: string): boolean {
    return this.#held.has(key);
  }

  /** Requests of its turn that are held now. */
  held(key: string): number {
    return this.#held.get(key) ?? 0;
  }

  /** Lets all go on that are held, and those that come. */
  open(): void {
    this.#open();
  }

  /** Holds those that come from now on. */
  close(): void {
    this.#opened.push(
      new Promise((resolve) => {
        this.#open = resolve;
      }),
    );
  }
}
