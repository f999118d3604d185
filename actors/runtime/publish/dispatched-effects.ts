import type { Bus, Subscription } from '#bus/bus.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EffectRow } from '../../effects/effect-row.ts';

/** Per silence. Ticks are counted in place of time: a host whose event loop is late has read nothing meanwhile. */
const TICKS = 6;
/** The first one may come at once. */
const SILENT_TICKS = TICKS + 1;

interface Followed {
  effect: EffectRow;
  /** Without a heartbeat that names it. */
  ticks: number;
  /** The last command of its partition when the silence was noticed; null: not known. Its result may be one of those. */
  upTo: number | null;
  isAsking: boolean;
}

export interface DispatchedEffectsDeps {
  bus: Pick<Bus, 'work' | 'commands' | 'isReady' | 'onReconnect'>;
  log: Log;
  /** Without a heartbeat. */
  silenceMs: number;
  /** Up to which command of the partition this host has committed; null: it does not own the partition. */
  cursorOf(partition: number): number | null;
  /** No worker has the call, or can get it. */
  onRefused(effect: EffectRow): void;
  /** No worker names the call any more, and it has no result: it was lost on its way, or with its worker. */
  onLost(effect: EffectRow): void;
}

/**
 * Calls that were dispatched to workers and have no result yet. A dispatch is stored nowhere, and the owner of the partition learns of its loss by the silence of
 * workers, which name their calls in heartbeats. A worker names a call until its result is stored, so a silent call is lost only if the commands that were
 * stored by then are applied and it is open still.
 */
export class DispatchedEffects {
  readonly #deps: DispatchedEffectsDeps;
  readonly #followed = new ObjectMap<Followed>();
  readonly #timer: NodeJS.Timeout;
  readonly #subscriptions: readonly Subscription[];

  constructor(deps: DispatchedEffectsDeps) {
    this.#deps = deps;
    const { bus, silenceMs } = deps;
    this.#subscriptions = [bus.work.onRefused((id) => this.#onRefused(id)), bus.onReconnect(() => this.#beginAnew())];
    this.#timer = setInterval(() => this.#tick(), silenceMs / TICKS).unref();
  }

  has(effectId: string): boolean {
    return this.#followed.has(effectId);
  }

  /** It is dispatched, or was by the former owner of its partition. */
  follow(effect: EffectRow): void {
    this.#followed.set(effect.id, { effect, ticks: 0, upTo: null, isAsking: false });
  }

  /** @param effectIds a worker has them, or another kind of call */
  onHeartbeat(effectIds: readonly string[]): void {
    for (const id of effectIds) {
      const followed = this.#followed.get(id);
      if (followed !== undefined) heard(followed);
    }
  }

  delete(effectId: string): void {
    this.#followed.delete(effectId);
  }

  forget(partition: number): void {
    for (const { effect } of this.#followed.values()) if (effect.partition === partition) this.#followed.delete(effect.id);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#subscriptions.map((one) => one.stop())); // no fail point: stops
  }

  #onRefused(id: string): void {
    const followed = this.#followed.get(id);
    if (followed === undefined) return;
    this.#followed.delete(id);
    this.#deps.onRefused(followed.effect);
  }

  /** Heartbeats of the meantime are lost. */
  #beginAnew(): void {
    for (const followed of this.#followed.values()) heard(followed);
  }

  #tick(): void {
    if (!this.#deps.bus.isReady()) {
      this.#beginAnew();
      return;
    }
    const unasked = new Map<number, Followed[]>();
    for (const followed of this.#followed.values()) {
      followed.ticks += 1;
      if (followed.ticks < SILENT_TICKS) continue;
      const { partition } = followed.effect;
      if (followed.upTo !== null) this.#judge(followed, followed.upTo);
      else if (!followed.isAsking) unasked.set(partition, [...(unasked.get(partition) ?? []), followed]);
    }
    for (const [partition, silent] of unasked) void this.#ask(partition, silent);
  }

  /** Never rejects. Without a reply this host may be cut off, and is asked for at the next tick. */
  async #ask(partition: number, silent: readonly Followed[]): Promise<void> {
    const { bus, log } = this.#deps;
    for (const followed of silent) followed.isAsking = true;
    try {
      const last = await bus.commands.lastOf(partition); // no fail point: reads
      for (const followed of silent) if (followed.ticks >= SILENT_TICKS) followed.upTo = last;
    } catch (error) {
      log.warn({ err: error, partition }, 'calls that no worker names can not be judged: the end of the command log is not known');
    } finally {
      for (const followed of silent) followed.isAsking = false;
    }
  }

  #judge({ effect }: Followed, upTo: number): void {
    const { log, cursorOf, onLost } = this.#deps;
    const cursor = cursorOf(effect.partition);
    if (cursor === null || cursor < upTo) return;
    this.#followed.delete(effect.id);
    log.warn({ effect_id: effect.id, session_id: effect.sessionId }, 'no heartbeat from the worker of a call: the call is queued for another worker');
    onLost(effect);
  }
}

function heard(followed: Followed): void {
  followed.ticks = 0;
  followed.upTo = null;
}
