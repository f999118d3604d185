import type { Bus, Subscription } from '#bus/bus.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { BusContact } from './bus-contact.ts';
import type { CommitLoop } from './commit-loop.ts';
import { beat, deregisterHost } from './heartbeat.ts';
import type { HostTimes } from './host-times.ts';
import { Mailbox } from './mailbox.ts';
import { refuseOtherLogAmong } from './one-log.ts';
import type { Outbox } from './outbox.ts';
import { acquirePartitions, type PartitionClaim, releaseOutside, releasePartitions } from './ownership.ts';
import { partitionRanges } from './partition-ranges.ts';
import { type LiveHost, type Share, shareOf } from './rendezvous.ts';
import { lostStarts, START_LOOK_MS } from './run-starts.ts';
import { StoredProgress } from './stored-progress.ts';
import type { Timers } from './timers.ts';

export interface HostDeps {
  hostId: string;
  machineVersion: number;
  database: Database;
  bus: Bus;
  log: Log;
  loop: CommitLoop;
  timers: Timers;
  outbox: Outbox;
  times: HostTimes;
}

/**
 * This host among the others: says that it lives, takes the partitions that are its share, and gives back those that are not. A round
 * is made every second, and at once when another host says that it has come, gone or given something back.
 */
export class Host {
  readonly #deps: HostDeps;
  readonly #contact: BusContact;
  readonly #progress = new StoredProgress();
  #rebalancing: Promise<void> | null = null;
  /** A heartbeat beside a round that takes long. */
  #beating: Promise<void> | null = null;
  #again = false;
  /** Its first heartbeat is written, and no host that has another log was there. */
  #isAmongHosts = false;
  /** Said with each heartbeat. */
  #isStopping = false;
  #leaving = false;
  #ticks: NodeJS.Timeout | null = null;
  #watch: NodeJS.Timeout | null = null;
  #subscription: Subscription | null = null;
  #lastBeatAtMs = performance.now();
  #lastStartsAtMs = performance.now();
  #others: LiveHost[] = [];

  constructor(deps: HostDeps) {
    this.#deps = deps;
    // As long as the life of a heartbeat: what another has said of itself is good for no longer.
    this.#contact = new BusContact({ commands: deps.bus.commands, gapMs: deps.times.expiresAfterMs });
  }

  /** Takes its share. @throws `service.other_log`, and what else the first round throws */
  async open(): Promise<void> {
    const { bus, times } = this.#deps;
    this.#subscription = bus.notices.subscribe(patternOf(addresses.hosts), () => this.#wake());
    try {
      await this.#begin(); // no fail point: inside
    } catch (error) {
      this.#leaving = true;
      await this.#subscription.stop(); // no fail point: stops
      // Its first heartbeat may have been written; should this fail, too, it looks dead soon.
      await deregisterHost(this.#deps.database, this.#deps.hostId).catch(() => {}); // no fail point: inside
      throw error;
    }
    this.#announce();
    this.#ticks = setInterval(() => this.#tick(), times.beatMs);
    // On its own: a round that waits for the database must not keep us from dropping what it can't prove to be ours.
    this.#watch = setInterval(() => this.#dropUnproven(), times.beatMs / 4);
  }

  /** Whether another host could go on with what this one leaves. One that is stopping itself could not. */
  get hasPeers(): boolean {
    return this.#others.some(({ machineVersion, stopping }) => stopping === undefined && machineVersion >= this.#deps.machineVersion);
  }

  /**
   * Whether this host may yet be left with another one's partitions: a host that began to stop earlier may not know that this one stops,
   * and hands over to it. The order of their beginnings keeps two from waiting for each other.
   */
  get mayInherit(): boolean {
    return this.#rebalancing !== null || this.#others.some(({ stopping }) => stopping?.isEarlier === true);
  }

  /** Tells the other hosts that this one stops, and looks which of them do. It goes on taking its share until it leaves. */
  async announceStop(): Promise<void> {
    this.#isStopping = true;
    // Two heartbeats that are written in the same moment do not see each other: of two hosts at least one sees the other with its second.
    for (let rebalance = 0; rebalance < 2; rebalance += 1) {
      while (this.#rebalancing !== null) await this.#rebalancing; // no fail point: waits
      if (this.#leaving) return;
      await this.#begin(); // no fail point: inside
    }
    this.#announce();
  }

  /** Gives everything back. Nothing is taken any more. */
  async leave(): Promise<void> {
    const { database, hostId, log, loop } = this.#deps;
    this.#leaving = true;
    for (const timer of [this.#ticks, this.#watch]) if (timer !== null) clearInterval(timer);
    await this.#subscription?.stop(); // no fail point: stops
    await this.#rebalancing; // no fail point: waits (2)
    // One that arrived after the sign-off would make us look alive, and our share would wait for us.
    await this.#beating;
    const claims = await loop.release(loop.partitions); // no fail point: inside (3)
    try {
      await deregisterHost(database, hostId);
      await releasePartitions(database, claims);
      this.#announce();
    } catch (error) {
      log.warn({ err: error }, 'the partitions could not be given back; others take them once this host looks dead');
    }
  }

  #tick(): void {
    // Not awaited: what it finds out goes with the next heartbeat. Why there was no answer is in the log of the bus.
    this.#contact.ask().catch(() => {});
    // A round may wait long for the bus, or for what a large take-over reads. That this host lives is said all the same.
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
    this.#begin().catch((error: unknown) => this.#deps.log.warn({ err: error }, 'a round among the hosts failed; the next goes on'));
  }

  /** One round at a time: two would take the same partitions from each other. What is heard meanwhile makes another behind it. */
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
    const { database, hostId, machineVersion, times } = this.#deps;
    const begunAtMs = performance.now();
    // no fail point: inside
    const hosts = await beat(database, {
      hostId,
      machineVersion,
      bus: this.#contact.status(),
      isStopping: this.#isStopping,
      expiresAfterMs: times.expiresAfterMs,
    });
    this.#lastBeatAtMs = Math.max(this.#lastBeatAtMs, begunAtMs);
    this.#others = hosts.filter((host) => host.id !== hostId);
    return hosts;
  }

  async #rebalance(): Promise<void> {
    const { hostId, loop, times } = this.#deps;
    // Once it is among the hosts others leave it its share, and without the log it could not take it.
    if (this.#contact.status() === null) await this.#contact.ask(); // no fail point: reads
    let hosts = await this.#beat(); // no fail point: inside
    if (!this.#isAmongHosts) {
      refuseOtherLogAmong(hosts, { hostId, expiresAfterMs: times.expiresAfterMs });
      // Two first heartbeats that are written in the same moment do not see each other.
      hosts = await this.#beat(); // no fail point: inside
      refuseOtherLogAmong(hosts, { hostId, expiresAfterMs: times.expiresAfterMs });
    }
    this.#isAmongHosts = true;
    if (this.#leaving) return;
    const share = shareOf(hostId, hosts, { freshMs: times.expiresAfterMs, cutOffMs: times.cutOffMs });
    await this.#releaseSurplus(share); // no fail point: inside (2)
    const owned = new Set(loop.partitions);
    if (this.#hasBus) await this.#acquire([...share.own].filter((partition) => !owned.has(partition)));
    await this.#startLost(); // no fail point: reads
  }

  get #hasBus(): boolean {
    return (this.#contact.status()?.reachedAgoMs ?? Number.POSITIVE_INFINITY) <= this.#deps.times.expiresAfterMs;
  }

  /**
   * Gives back what is held beyond the share, and what is only still ours by name: partitions that were dropped, or whose release did not
   * arrive. While this host lives nobody else could take them.
   */
  async #releaseSurplus({ own, retain }: Share): Promise<void> {
    const { database, hostId, log, loop } = this.#deps;
    // Of what is only ours by name nothing is worth keeping.
    const retained = new Set(loop.partitions.filter((partition) => retain.has(partition)));
    await loop.release(loop.partitions.filter((partition) => !retained.has(partition))); // no fail point: inside (2)
    const claims = loop.mailboxes.map(({ claim }) => claim);
    const stored = this.#progress.snapshot();
    const { released: partitions, rows } = await releaseOutside(database, hostId, new Set([...own, ...retained]));
    this.#dropIfRestored(this.#progress.behind(stored, rows));
    // A host that stood still may not have noticed, and would wait for a command to be told: until then nobody had the partition.
    const isStillOurs = ({ partition, epoch }: PartitionClaim) => rows.get(partition)?.isOurs === true && rows.get(partition)?.epoch === epoch;
    const lost = claims.filter((claim) => loop.isOwned(claim) && !isStillOurs(claim)).map((claim) => claim.partition);
    loop.drop(lost, 'another host had taken it meanwhile');
    if (partitions.length === 0) return;
    if (this.#hasBus) log.info({ partitions: partitionRanges(partitions) }, 'partitions given back');
    else
      log.warn(
        { partitions: partitionRanges(partitions), silent_ms: this.#contact.status()?.reachedAgoMs },
        'the broker answers other hosts and not this one: partitions given back',
      );
    this.#announce();
  }

  /** Snapshots, timers and effects in memory are of a time that the database no longer has; commits made of them would all be fenced. */
  #dropIfRestored({ partitions, commits }: { partitions: number[]; commits: number }): void {
    if (partitions.length === 0) return;
    const { log, loop } = this.#deps;
    this.#progress.forget();
    const facts = { partitions: partitions.length, commits_missing: commits };
    log.error(facts, 'the database stands at an earlier time than this host has stored: what it holds in memory is dropped and read again');
    loop.drop(loop.partitions, 'the database was restored to an earlier time');
  }

  /** Takes what is free of its share; what another host still holds comes when that host has given it back. */
  async #acquire(partitions: readonly number[]): Promise<void> {
    if (partitions.length === 0) return;
    const { bus, database, hostId, machineVersion, log, loop, outbox, timers, times } = this.#deps;
    const [{ created }, queueBegunAtMs] = await Promise.all([bus.commands.state(), bus.work.begunAtMs()]); // no fail point: reads
    // no fail point: inside
    const claims = await acquirePartitions(database, { hostId, machineVersion, logCreated: created, partitions, expiresAfterMs: times.expiresAfterMs });
    if (claims.length === 0) return;
    const acquired = claims.map((claim) => claim.partition);
    for (const claim of claims) this.#progress.follow(claim);
    const mailboxes = claims.map((claim) => new Mailbox(claim, loop.kick));
    for (const mailbox of mailboxes) loop.own(mailbox);
    try {
      // Timers after the effects: one that is due is applied at once, and what it closes must not be read as open.
      await outbox.load(database, acquired, queueBegunAtMs); // no fail point: inside (2)
      await timers.load(database, acquired);
      await this.#start(acquired, true);
      failPoint('take-over.loaded');
    } catch (error) {
      loop.drop(acquired, 'what its former owner left could not be read');
      throw error;
    }
    // What was dropped meanwhile has left its timers and effects here, and they are its next owner's.
    const lost = claims.filter((claim) => !loop.isOwned(claim)).map((claim) => claim.partition);
    loop.drop(lost, 'dropped while it was being taken');
    // Only now: what a command opens must not be read again as something that was left behind.
    for (const mailbox of mailboxes) mailbox.follow(bus.commands);
    for (const { partition, epoch } of claims) bus.notices.publish(subjectOf(addresses.partitions, partition), JSON.stringify({ v: 1, epoch }));
    log.info({ host_id: hostId, partitions: partitionRanges(acquired) }, 'partitions taken');
  }

  async #startLost(): Promise<void> {
    if (performance.now() - this.#lastStartsAtMs < START_LOOK_MS) return;
    this.#lastStartsAtMs = performance.now();
    await this.#start(this.#deps.loop.partitions, false); // no fail point: reads
  }

  async #start(partitions: readonly number[], evenFresh: boolean): Promise<void> {
    if (partitions.length === 0) return;
    const starts = await lostStarts(this.#deps.database, partitions, { evenFresh }); // no fail point: reads
    for (const { partition, command } of starts) this.#deps.loop.mailboxOf(partition)?.start(command);
  }

  /** A host that was paused, or can't reach the database, is about to be taken for dead: it stops on its own, and starts afresh. */
  #dropUnproven(): void {
    const silentMs = performance.now() - this.#lastBeatAtMs;
    if (silentMs < this.#deps.times.dropAfterMs) return;
    this.#deps.loop.drop(this.#deps.loop.partitions, `no heartbeat could be written for ${Math.round(silentMs)} ms`);
  }

  /** The others look at once. Who misses it looks within a second. */
  #announce(): void {
    this.#deps.bus.notices.publish(subjectOf(addresses.hosts, this.#deps.hostId), '{"v":1}');
  }
}
