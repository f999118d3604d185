import type { Bus, Subscription } from '#bus/bus.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { EffectRow } from '../effects/effect-row.ts';
import type { PartitionClaim } from '../store/port/partition-store.ts';
import type { RuntimeStore } from '../store/runtime-store.ts';
import type { CommitLoop } from './apply/commit-loop.ts';
import { Mailbox } from './apply/mailbox.ts';
import type { HostTimes } from './host-times.ts';
import { BusContact } from './partitions/bus-contact.ts';
import { refuseOtherLogAmong } from './partitions/one-log.ts';
import { partitionRanges } from './partitions/partition-ranges.ts';
import { type LiveHost, type Share, shareOf } from './partitions/rendezvous.ts';
import { StoredProgress } from './partitions/stored-progress.ts';
import type { ArmedTimer, Timers } from './partitions/timers.ts';
import { startsOfUnstarted, UNSTARTED_SEARCH_MS } from './partitions/unstarted-runs.ts';
import type { Outbox } from './publish/outbox.ts';

export interface HostDeps {
  hostId: string;
  machineVersion: number;
  store: RuntimeStore;
  bus: Bus;
  log: Log;
  loop: CommitLoop;
  timers: Timers;
  /** The timers of an open effect that stand in no row. */
  timersOf(effect: EffectRow): ArmedTimer[];
  outbox: Outbox;
  metrics: Metrics;
  times: HostTimes;
}

/**
 * Membership of this host: heartbeats, and acquiring and releasing partitions by its share. Rebalances every second, and when another host
 * announces a change.
 */
export class Host {
  readonly #deps: HostDeps;
  readonly #contact: BusContact;
  readonly #progress = new StoredProgress();
  #rebalancing: Promise<void> | null = null;
  /** A heartbeat during a slow rebalance. */
  #beating: Promise<void> | null = null;
  #again = false;
  /** The first heartbeat is written, and no live host has another command log. */
  #isAmongHosts = false;
  /** Part of each heartbeat. */
  #isStopping = false;
  #leaving = false;
  #ticks: NodeJS.Timeout | null = null;
  #watch: NodeJS.Timeout | null = null;
  #subscriptions: Subscription[] = [];
  #lastBeatAtMs = performance.now();
  #lastUnstartedSearchAtMs = performance.now();
  #others: LiveHost[] = [];
  /** Partitions that were dropped for want of a heartbeat, until a read says whether another host has acquired them. */
  readonly #unproven = new Set<number>();

  constructor(deps: HostDeps) {
    this.#deps = deps;
    // Another host's status is no older than a heartbeat may be.
    this.#contact = new BusContact({ commands: deps.bus.commands, gapMs: deps.times.expiresAfterMs });
  }

  /** Acquires its share. @throws `service.other_log`, and what else the first rebalance throws */
  async open(): Promise<void> {
    const { bus, loop, times } = this.#deps;
    this.#subscriptions = [
      bus.notices.subscribe(patternOf(addresses.hosts), () => this.#wake()),
      // What was published since the broker was lost has reached no reader.
      bus.onReconnect(() => this.#notifyReaders(loop.mailboxes.map(({ claim }) => claim))),
    ];
    try {
      await this.#begin(); // no fail point: inside
    } catch (error) {
      this.#leaving = true;
      await this.#stopSubscriptions(); // no fail point: stops
      // Its heartbeat may be written; if this fails too, it expires.
      await this.#deps.store.hosts.deregister(this.#deps.hostId).catch(() => {}); // no fail point: stops
      throw error;
    }
    this.#announce();
    this.#ticks = setInterval(() => this.#tick(), times.beatMs);
    // Own timer: a rebalance that waits for the database must not delay it.
    this.#watch = setInterval(() => this.#dropUnproven(), times.beatMs / 4);
  }

  /** Whether another host could take over: not if it is stopping or older. */
  get hasPeers(): boolean {
    return this.#others.some(({ machineVersion, stopping }) => stopping === undefined && machineVersion >= this.#deps.machineVersion);
  }

  /**
   * Whether another host may still release partitions to this one, as one that began to stop earlier and does not know that this one stops. The
   * order of stops keeps two from waiting for each other.
   */
  get mayInherit(): boolean {
    return this.#rebalancing !== null || this.#others.some(({ stopping }) => stopping?.isEarlier === true);
  }

  /** No other host can have acquired its partitions: its last heartbeat is young. */
  get isProven(): boolean {
    return performance.now() - this.#lastBeatAtMs < this.#deps.times.dropAfterMs;
  }

  /** Announces the stop and reads which others stop. Goes on acquiring its share until `leave`. */
  async announceStop(): Promise<void> {
    this.#isStopping = true;
    // Simultaneous heartbeats do not see each other; after two, at least one of two hosts sees the other.
    for (let rebalance = 0; rebalance < 2; rebalance += 1) {
      while (this.#rebalancing !== null) await this.#rebalancing; // no fail point: waits
      if (this.#leaving) return;
      await this.#begin(); // no fail point: inside
    }
    this.#announce();
  }

  /** Releases all partitions and acquires none. */
  async leave(): Promise<void> {
    const { store, hostId, log, loop } = this.#deps;
    this.#leaving = true;
    for (const timer of [this.#ticks, this.#watch]) if (timer !== null) clearInterval(timer);
    await this.#stopSubscriptions(); // no fail point: stops
    await this.#rebalancing; // no fail point: waits (2)
    // A heartbeat after the deregistration would make this host look alive until it expires.
    await this.#beating;
    const claims = await loop.release(loop.partitions); // no fail point: inside
    try {
      await store.hosts.deregister(hostId);
      failPoint('leave.signed-off');
      await store.partitions.release(claims);
      failPoint('leave.given-back');
      this.#announce();
    } catch (error) {
      log.warn({ err: error }, 'the partitions could not be released; other hosts acquire them once the heartbeat of this one has expired');
    }
  }

  async #stopSubscriptions(): Promise<void> {
    await Promise.all(this.#subscriptions.map((one) => one.stop())); // no fail point: stops
  }

  #tick(): void {
    // Not awaited: the result goes into the next heartbeat, and the bus logs failures.
    this.#contact.check().catch(() => {});
    // A rebalance may wait for the bus or a large take-over; the heartbeat must not.
    if (this.#rebalancing !== null && this.#beating === null) {
      this.#beating = this.#beat()
        // no fail point: waits
        .then(() => {})
        .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'a heartbeat could not be written; the next follows'))
        .finally(() => {
          this.#beating = null;
        });
    }
    this.#wake();
  }

  #wake(): void {
    if (this.#leaving) return;
    if (this.#rebalancing !== null) {
      this.#again = true;
      return;
    }
    this.#begin().catch((error: unknown) => this.#deps.log.warn({ err: error }, 'a rebalance of the partitions failed; the next one follows'));
  }

  /** One at a time: two would take the same partitions from each other. A wake-up meanwhile makes another one. */
  #begin(): Promise<void> {
    const rebalance = this.#rebalance();
    this.#rebalancing = rebalance
      .catch(() => {})
      .finally(() => {
        this.#rebalancing = null;
        if (!this.#again) return;
        this.#again = false;
        this.#wake();
      });
    return rebalance;
  }

  async #beat(): Promise<LiveHost[]> {
    const { store, hostId, machineVersion, times } = this.#deps;
    const begunAtMs = performance.now();
    const bus = this.#contact.status();
    this.#others = await store.hosts.beat({ hostId, machineVersion, bus, isStopping: this.#isStopping, expiresAfterMs: times.expiresAfterMs });
    failPoint('heartbeat.written');
    this.#lastBeatAtMs = Math.max(this.#lastBeatAtMs, begunAtMs);
    return [{ id: hostId, machineVersion, bus }, ...this.#others];
  }

  async #rebalance(): Promise<void> {
    const { hostId, loop, times } = this.#deps;
    // Once registered, others leave it its share, which it can't acquire without the log.
    if (this.#contact.status() === null) await this.#contact.check(); // no fail point: reads
    let hosts = await this.#beat(); // no fail point: inside
    if (!this.#isAmongHosts) {
      refuseOtherLogAmong(hosts, { hostId, expiresAfterMs: times.expiresAfterMs });
      // Simultaneous first heartbeats do not see each other.
      hosts = await this.#beat(); // no fail point: inside
      refuseOtherLogAmong(hosts, { hostId, expiresAfterMs: times.expiresAfterMs });
    }
    this.#isAmongHosts = true;
    if (this.#leaving) return;
    const share = shareOf(hostId, hosts, { freshMs: times.expiresAfterMs, cutOffMs: times.cutOffMs });
    await this.#releaseSurplus(share); // no fail point: inside (2)
    const owned = new Set(loop.partitions);
    if (this.#hasBus) await this.#acquire([...share.own].filter((partition) => !owned.has(partition)));
    await this.#startUnstarted(); // no fail point: reads
  }

  get #hasBus(): boolean {
    return (this.#contact.status()?.reachedAgoMs ?? Number.POSITIVE_INFINITY) <= this.#deps.times.expiresAfterMs;
  }

  /**
   * Releases partitions beyond the share, and those assigned to this host by the row only: dropped, or with a failed release. No other host can
   * acquire them while this one is alive.
   */
  async #releaseSurplus({ own, retain }: Share): Promise<void> {
    const { store, hostId, log, loop, metrics } = this.#deps;
    // Those assigned by the row only have no state to retain.
    const retained = new Set(loop.partitions.filter((partition) => retain.has(partition)));
    await loop.release(loop.partitions.filter((partition) => !retained.has(partition))); // no fail point: inside
    const claims = loop.mailboxes.map(({ claim }) => claim);
    const unproven = [...this.#unproven];
    const progress = this.#progress.snapshot();
    const { released: partitions, before } = await store.partitions.releaseOutside(hostId, new Set([...own, ...retained]));
    if (partitions.length > 0) failPoint('partitions.given-back');
    this.#dropIfRestored(this.#progress.behind(progress, before));
    // A paused host would otherwise notice a take-over only at its next, fenced commit.
    const isStillOurs = ({ partition, epoch }: PartitionClaim) => before.get(partition)?.owner === hostId && before.get(partition)?.epoch === epoch;
    const lost = claims.filter((claim) => loop.isOwned(claim) && !isStillOurs(claim)).map((claim) => claim.partition);
    loop.drop(lost, 'another host has acquired it');
    for (const partition of unproven) this.#unproven.delete(partition);
    // One that was released, or acquired again by this host, was not taken.
    const taken = unproven.filter((partition) => (before.get(partition)?.owner ?? hostId) !== hostId);
    const fenced = lost.length + taken.length;
    if (fenced > 0) metrics.add('fences', {}, fenced);
    if (partitions.length === 0) return;
    if (this.#hasBus) log.info({ partitions: partitionRanges(partitions) }, 'partitions released');
    else
      log.warn(
        { partitions: partitionRanges(partitions), silent_ms: this.#contact.status()?.reachedAgoMs },
        'the broker answers other hosts and not this one: partitions released',
      );
    this.#announce();
  }

  /** The state in memory is newer than the restored database, so commits would be fenced. */
  #dropIfRestored({ partitions, commits }: { partitions: number[]; commits: number }): void {
    if (partitions.length === 0) return;
    const { log, loop } = this.#deps;
    this.#progress.forget();
    const facts = { partitions: partitions.length, commits_missing: commits };
    log.error(facts, 'the database is in an earlier state than this host has stored: the state in memory is dropped and read again');
    loop.drop(loop.partitions, 'the database was restored to an earlier time');
  }

  /** Acquires free partitions; others follow when their owners have released them. */
  async #acquire(partitions: readonly number[]): Promise<void> {
    if (partitions.length === 0) return;
    const { bus, store, hostId, machineVersion, log, loop, outbox, timers, timersOf, times } = this.#deps;
    const [{ created, lastSequence }, queueCreatedAtMs] = await Promise.all([bus.commands.state(), bus.work.createdAtMs()]); // no fail point: reads
    const { expiresAfterMs } = times;
    const claims = await store.partitions.acquire({ hostId, machineVersion, logCreated: created, partitions, expiresAfterMs });
    if (claims.length === 0) return;
    failPoint('take-over.claimed');
    const acquired = claims.map((claim) => claim.partition);
    for (const claim of claims) this.#progress.follow(claim);
    const mailboxes = claims.map((claim) => new Mailbox(claim, loop.kick));
    for (const mailbox of mailboxes) loop.own(mailbox);
    try {
      // Timers last: a due one is applied behind what the log has by now, and effects that it closes must not be loaded as open.
      const open = await outbox.load(store.effects, acquired, queueCreatedAtMs); // no fail point: inside (2)
      await timers.load(store.timers, acquired, open.flatMap(timersOf));
      await this.#start(acquired, true);
      failPoint('take-over.loaded');
    } catch (error) {
      loop.drop(acquired, 'the rows of its former owner could not be read');
      throw error;
    }
    // Dropped meanwhile: what was loaded for them belongs to the next owner.
    const lost = claims.filter((claim) => !loop.isOwned(claim)).map((claim) => claim.partition);
    loop.drop(lost, 'dropped while it was being acquired');
    // After loading, so that a command's new effect is not loaded as left behind.
    for (const mailbox of mailboxes) mailbox.follow(bus.commands, lastSequence);
    this.#notifyReaders(claims);
    log.info({ host_id: hostId, partitions: partitionRanges(acquired) }, 'partitions acquired');
  }

  /** They compare what they have read with what is stored. */
  #notifyReaders(claims: readonly PartitionClaim[]): void {
    const { notices } = this.#deps.bus;
    for (const { partition, epoch } of claims) notices.publish(subjectOf(addresses.partitions, partition), JSON.stringify({ v: 1, epoch }));
  }

  async #startUnstarted(): Promise<void> {
    if (performance.now() - this.#lastUnstartedSearchAtMs < UNSTARTED_SEARCH_MS) return;
    this.#lastUnstartedSearchAtMs = performance.now();
    await this.#start(this.#deps.loop.partitions, false); // no fail point: reads
  }

  async #start(partitions: readonly number[], ignoreAge: boolean): Promise<void> {
    if (partitions.length === 0) return;
    const starts = await startsOfUnstarted(this.#deps.store.runs, partitions, { ignoreAge }); // no fail point: reads
    for (const { partition, command } of starts) this.#deps.loop.mailboxOf(partition)?.start(command);
  }

  /** Paused, or without the database: about to expire, so it drops all and acquires anew. */
  #dropUnproven(): void {
    const silentMs = performance.now() - this.#lastBeatAtMs;
    const { loop, times } = this.#deps;
    if (silentMs < times.dropAfterMs) return;
    for (const partition of loop.partitions) this.#unproven.add(partition);
    loop.drop(loop.partitions, `no heartbeat could be written for ${Math.round(silentMs)} ms`);
  }

  /** Lossy: others rebalance every second anyway. */
  #announce(): void {
    this.#deps.bus.notices.publish(subjectOf(addresses.hosts, this.#deps.hostId), '{"v":1}');
  }
}
