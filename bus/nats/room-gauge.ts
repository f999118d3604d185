import type { NatsLink } from './link.ts';
import { streams } from './streams.ts';

/** How old an answer of the broker may be. */
const LOOK_EVERY_MS = 2_000;
/** From here on nothing new is let in from outside, so that the results of what was let in still fit. */
const ROOMY_SHARE = 0.8;
const LOOK_BUDGET_MS = 2_000;

/** Whether the streams of commands and work have room. Answers from the last look, and looks again in the background when that is old. */
export class RoomGauge {
  readonly #link: NatsLink;
  /** The ones that this process may ask about. */
  readonly #names: readonly string[];
  #isRoomy = true;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;

  constructor(link: NatsLink, names: readonly string[]) {
    this.#link = link;
    this.#names = names.filter((name) => name === streams.commands.name || name === streams.work.name);
  }

  hasRoom(): boolean {
    if (performance.now() - this.#lookedAt > LOOK_EVERY_MS) void this.look();
    return this.#isRoomy;
  }

  /** The broker has just refused something for want of room. */
  markFull(): void {
    this.#isRoomy = false;
    this.#lookedAt = performance.now();
  }

  /** Never rejects: while the broker is away the last answer stands. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(() => {})
      .finally(() => {
        this.#lookedAt = performance.now();
        this.#looking = null;
      });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const infos = await Promise.all(
      this.#names.map((name) => this.#link.persistently('describe a stream', LOOK_BUDGET_MS, () => this.#link.manager.streams.info(name))),
    );
    this.#isRoomy = infos.every(({ config, state }) => state.bytes < ROOMY_SHARE * config.max_bytes);
  }
}
