import type { Bus, Subscription } from '#bus/bus.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EffectRow } from '../../effects/effect-row.ts';

/** Checks are counted in place of time: a host whose event loop is late has read nothing meanwhile. */
const CHECKS_PER_SILENCE = 6;
/** The first one may come at once. */
const SILENT_CHECKS = CHECKS_PER_SILENCE + 1;
/**
 * Heartbeats are lost while the host has no connection. Within so many checks behind it a worker that is connected names its calls twice, and the lease of one that
 * is not has ended (`dispatchedLeaseMs`).
 */
const CHECKS_AFTER_RECONNECT = 4;
/** In one silence: a connection that is lost again and again does not put the judgement off for ever. */
const MAX_RECONNECTS = 3;

/** The end of the command log when the silence was noticed. The result of a call that is over is among the commands up to it. */
interface LogEnd {
  sequence: number;
  /** Up to which command this host had committed: less later is another log. */
  cursor: number;
}

interface Followed {
  effect: EffectRow;
  isNamed: boolean;
  /** Since the dispatch, or the last heartbeat that names it. */
  silentChecks: number;
  reconnects: number;
  upTo: LogEnd | null;
  isAsking: boolean;
}

export interface DispatchedEffectsDeps {
  bus: Pick<Bus, 'work' | 'commands' | 'connectionNumber'>;
  log: Log;
  /** Without a heartbeat. */
  silenceMs: number;
  /** Up to which command of the partition this host has committed; null: it does not own the partition. */
  cursorOf(partition: number): number | null;
  /** No worker executes the call, or can get it. */
  onRefused(effect: EffectRow): void;
  /** A worker without a free slot has stored the call in the queue. */
  onStored(effect: EffectRow): void;
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
  #connection: number | null;
  /** A question had no reply: logged once until one has. */
  #isUnanswered = false;

  constructor(deps: DispatchedEffectsDeps) {
    this.#deps = deps;
    const { bus, silenceMs, onRefused, onStored } = deps;
    this.#connection = bus.connectionNumber();
    this.#subscriptions = [bus.work.onRefused((id) => this.#end(id, onRefused)), bus.work.onStored((id) => this.#end(id, onStored))];
    this.#timer = setInterval(() => this.#check(), silenceMs / CHECKS_PER_SILENCE).unref();
  }

  has(effectId: string): boolean {
    return this.#followed.has(effectId);
  }

  /** It is dispatched, or was by the former owner of its partition. */
  follow(effect: EffectRow): void {
    this.#followed.set(effect.id, { effect, isNamed: false, silentChecks: 0, reconnects: 0, upTo: null, isAsking: false });
  }

  /** @param effectIds a worker executes them, or another kind of call */
  onHeartbeat(effectIds: readonly string[]): void {
    for (const id of effectIds) {
      const followed = this.#followed.get(id);
      if (followed === undefined) continue;
      followed.isNamed = true;
      followed.silentChecks = 0;
      followed.reconnects = 0;
      followed.upTo = null;
    }
  }

  /** @returns a partition of these with a call that no worker has named yet: it may be refused */
  unnamedAmong(partitions: ReadonlySet<number>): number | null {
    for (const { effect, isNamed } of this.#followed.values()) if (!isNamed && partitions.has(effect.partition)) return effect.partition;
    return null;
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

  #end(id: string, report: (effect: EffectRow) => void): void {
    const followed = this.#followed.get(id);
    if (followed === undefined) return;
    this.#followed.delete(id);
    report(followed.effect);
  }

  #check(): void {
    const connection = this.#deps.bus.connectionNumber();
    const isAnother = connection !== null && connection !== this.#connection;
    if (isAnother) this.#connection = connection;
    const unasked = new Map<number, Followed[]>();
    for (const followed of this.#followed.values()) {
      if (isAnother) awaitHeartbeats(followed);
      followed.silentChecks += 1;
      if (connection === null || followed.silentChecks < SILENT_CHECKS || this.#judge(followed) || followed.isAsking) continue;
      const { partition } = followed.effect;
      unasked.set(partition, [...(unasked.get(partition) ?? []), followed]);
    }
    for (const [partition, silent] of unasked) void this.#ask(partition, silent);
  }

  /** Never rejects. Without a reply the host may be cut off: the question is repeated at the next check. */
  async #ask(partition: number, silent: readonly Followed[]): Promise<void> {
    const { bus, cursorOf, log } = this.#deps;
    for (const followed of silent) followed.isAsking = true;
    try {
      const sequence = await bus.commands.lastOf(partition); // no fail point: reads
      this.#isUnanswered = false;
      const cursor = cursorOf(partition) ?? 0;
      for (const followed of silent) if (followed.silentChecks >= SILENT_CHECKS) followed.upTo = { sequence, cursor };
    } catch (error) {
      if (!this.#isUnanswered) log.warn({ err: error, partition }, 'calls without heartbeats can not be judged: the end of the command log is not known');
      this.#isUnanswered = true;
    } finally {
      for (const followed of silent) followed.isAsking = false;
    }
  }

  /** @returns false: the end of the log is not known */
  #judge(followed: Followed): boolean {
    const { log, cursorOf, onLost } = this.#deps;
    const { effect, upTo } = followed;
    if (upTo === null) return false;
    const cursor = cursorOf(effect.partition) ?? 0;
    if (cursor < upTo.cursor) {
      followed.upTo = null;
      return false;
    }
    if (cursor < upTo.sequence) return true;
    this.#followed.delete(effect.id);
    log.warn({ effect_id: effect.id, session_id: effect.sessionId }, 'no heartbeat names a dispatched call: it is queued for another worker');
    onLost(effect);
    return true;
  }
}

function awaitHeartbeats(followed: Followed): void {
  if (followed.reconnects >= MAX_RECONNECTS) return;
  followed.reconnects += 1;
  followed.silentChecks = Math.min(followed.silentChecks, SILENT_CHECKS - CHECKS_AFTER_RECONNECT);
}
