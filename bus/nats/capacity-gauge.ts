import { LOOK_EVERY_MS, QueuePace } from '#shared/admission.ts';
import type { WorkKind } from '../bus.ts';
import type { NatsLink } from './link.ts';
import { streams, workConsumers } from './streams.ts';

/** From here on nothing new is let in from outside, so that the results of what was let in still fit. */
const ROOMY_SHARE = 0.8;
const LOOK_BUDGET_MS = 2_000;

/**
 * Whether the streams of commands and work have room, and whether work is taken up as it comes. Answers from the last look, and looks
 * again in the background when that is old.
 */
export class RoomGauge {
  readonly #link: NatsLink;
  /** The ones that this process may ask about. */
  readonly #names: readonly string[];
  /** Of the kinds that somebody here asks about. */
  readonly #paces = new Map<WorkKind, QueuePace>();
  #isRoomy = true;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;

  constructor(link: NatsLink, names: readonly string[]) {
    this.#link = link;
    this.#names = names.filter((name) => name === streams.commands.name || name === streams.work.name);
  }

  /** @param kind what is let in then is counted as an item of this kind */
  hasRoom(kind?: WorkKind): boolean {
    const pace = kind === undefined ? null : this.#paceOf(kind);
    if (performance.now() - this.#lookedAt > LOOK_EVERY_MS) void this.look();
    return this.#isRoomy && (pace === null || pace.admits(performance.now()));
  }

  /** The broker has just refused something for want of room. */
  markFull(): void {
    this.#isRoomy = false;
    this.#lookedAt = performance.now();
  }

  /** Never rejects: while the broker is away the last answer stands. */
  look(): Promise<void> {
    this.#looking ??= Promise.allSettled([this.#lookAtStreams(), ...[...this.#paces].map(([kind, pace]) => this.#lookAtQueue(kind, pace))])
      .then(() => {})
      .finally(() => {
        this.#lookedAt = performance.now();
        this.#looking = null;
      });
    return this.#looking;
  }

  #paceOf(kind: WorkKind): QueuePace {
    const known = this.#paces.get(kind);
    if (known !== undefined) return known;
    const fresh = new QueuePace();
    this.#paces.set(kind, fresh);
    return fresh;
  }

  async #lookAtStreams(): Promise<void> {
    const infos = await Promise.all(
      this.#names.map((name) => this.#link.persistently('describe a stream', LOOK_BUDGET_MS, () => this.#link.manager.streams.info(name))),
    );
    this.#isRoomy = infos.every(({ config, state }) => state.bytes < ROOMY_SHARE * config.max_bytes);
  }

  /** Without a consumer nobody has worked here yet: nothing is known then. */
  async #lookAtQueue(kind: WorkKind, pace: QueuePace): Promise<void> {
    const info = await this.#link.persistently('describe a consumer of work', LOOK_BUDGET_MS, () =>
      this.#link.manager.consumers.info(streams.work.name, workConsumers[kind].name),
    );
    pace.look({ atMs: performance.now(), waiting: info.num_pending, taken: info.delivered.consumer_seq });
  }
}
