import { keyReferenceOf } from '../../../shared/keys/key-reference.ts';
import { brokerLost } from '../broker-lost.ts';
import { commandStream, workStream } from '../cluster/broker-streams.ts';
import { ModelCluster } from '../cluster/model-cluster.ts';
import { ModelBroker } from '../model-broker.ts';
import { chanceOf } from '../random.ts';
import { type Process, Scheduler } from '../scheduler.ts';
import { type LedgerRules, LedgerTables } from './ledger-tables.ts';
import { ModelCache } from './model-cache.ts';
import { RouterDatabase } from './model-database.ts';
import { ModelTokens } from './model-tokens.ts';
import { ModelUsage } from './model-usage.ts';
import { openRouterBus, type RouterBroker } from './router-bus.ts';
import { gatewayOn, type Handle, type RouterFooting, routerWorkerOn } from './router-processes.ts';
import { config, keys, requestOf } from './router-setup.ts';
import { RouterWatch } from './router-watch.ts';
import { SimulatedClient } from './simulated-client.ts';
import { SimulatedOwner } from './simulated-owner.ts';
import { SimulatedProviders } from './simulated-provider.ts';
import { usageStream } from './usage-stream.ts';
import { Wire } from './wire.ts';

/** Of wall clocks. */
const MOST_SKEW_MS = 1_000;
/** Begins at noon, so that no window of a key ends within a schedule. */
const NOON_MS = 12 * 3_600_000;
/** A delivery reaches the other servers within this. */
const UNKNOWN_MS = 500;
/** One in so many records is refused, as when the log is full. */
const REFUSED_ONE_IN = 25;

export interface RouterSimulationOptions {
  seed: number;
  ledger?: LedgerRules;
  /** Whether errors have stack traces. */
  hasTraces?: boolean;
}

interface SimulatedGateway {
  process: Process;
  handle: Handle;
}

/** Gateways, workers with ledgers, their stores, clients and actors of one schedule, and the faults that can be injected. */
export class RouterSimulation {
  readonly scheduler: Scheduler;
  readonly tables: LedgerTables;
  readonly database: RouterDatabase;
  readonly watch: RouterWatch;
  readonly broker: ModelBroker;
  readonly router: RouterBroker;
  readonly cluster: ModelCluster;
  /** From now on nothing is refused. */
  isFaultFree = false;
  readonly providers: SimulatedProviders;
  readonly #cache: ModelCache;
  readonly gateways: SimulatedGateway[] = [];
  readonly workers: Process[] = [];
  readonly clients: SimulatedClient[] = [];
  #owner: { process: Process; calls: SimulatedOwner } | null = null;
  readonly counts = { kills: 0, pauses: 0, cutOffs: 0, restarts: 0, outages: 0, resumed: 0, storesLost: 0, leadersLost: 0, slowed: 0 };
  #numbers = 0;

  constructor({ seed, ledger }: RouterSimulationOptions) {
    this.scheduler = new Scheduler(chanceOf(seed));
    this.scheduler.nowMs += NOON_MS;
    const { scheduler } = this;
    this.tables = new LedgerTables(ledger);
    this.watch = new RouterWatch(scheduler, this.tables);
    this.database = new RouterDatabase({ scheduler, tables: this.tables, committed: () => this.watch.committed() });
    this.broker = new ModelBroker(scheduler, this.watch);
    const usage = new ModelUsage(scheduler, this.broker);
    this.router = {
      usage,
      tokens: new ModelTokens(scheduler, this.broker, (subject, frame) => this.watch.frame(subject, frame, usage)),
      wire: new Wire(scheduler, this.broker),
      dispatchConsumers: [],
      stores: new Map(),
      cutAtMs: new Map(),
      arrived: (callId, body) => this.watch.arrived(callId, body),
      taken: (process, callId) => this.watch.taken(process, callId),
      unpublished: (callId) => this.watch.unpublished.add(callId),
      givenUp: (process, callId) => this.watch.givenUp(process, callId),
    };
    const isFull = () => !this.isFaultFree && scheduler.chance.oneIn(REFUSED_ONE_IN);
    this.cluster = new ModelCluster({
      ...{ scheduler, broker: this.broker, isCluster: !scheduler.chance.oneIn(3) },
      stores: { cmd: commandStream(this.broker), work: workStream(this.broker, this.router.arrived), usage: usageStream(usage, isFull) },
      breach: (rule, what) => this.watch.breach(rule, what),
    });
    this.providers = new SimulatedProviders(scheduler);
    this.#cache = new ModelCache(scheduler);
  }

  get actorCalls(): readonly string[] {
    return this.#owner?.calls.callIds ?? [];
  }

  async startGateway(): Promise<void> {
    const process = this.#process('gateway');
    await this.scheduler.step(process, `${process.id} starts`, () => {
      this.gateways.push({ process, handle: gatewayOn(this.#footing(process)) });
    });
  }

  async startWorker(): Promise<void> {
    const process = this.#process('worker');
    this.workers.push(process);
    await this.scheduler.step(process, `${process.id} starts`, () => routerWorkerOn(this.#footing(process)));
  }

  /** A client sends a request. */
  async ask(): Promise<void> {
    const { chance } = this.scheduler;
    const up = this.gateways.filter(({ process }) => process.state === 'up');
    if (up.length === 0) return;
    const { process, handle } = chance.pick(up);
    const number = this.#next();
    const key = chance.pick([keys.free, keys.tight, keys.tight, keys.daily, keys.rated, keys.metered]);
    const client = new SimulatedClient({ number, key, stream: chance.oneIn(2), isDetached: chance.oneIn(5) }, process);
    this.clients.push(client);
    await this.scheduler.step(process, `${process.id} gets call ${number} of ${key.id}`, () => client.send(handle));
  }

  /** A client of a stream sends its request again, to any gateway, with the id of the last event that it has read. Its first connection may have ended with its gateway. */
  async resume(): Promise<void> {
    const { chance } = this.scheduler;
    const up = this.gateways.filter(({ process }) => process.state === 'up');
    const found = this.clients.filter((client) => client.isResumable);
    if (up.length === 0 || found.length === 0) return;
    const before = chance.pick(found);
    const { process, handle } = chance.pick(up);
    const client = new SimulatedClient(before.asked, process, before);
    this.clients.push(client);
    this.counts.resumed += 1;
    await this.scheduler.step(process, `${process.id} gets the rest of call ${before.asked.number} asked`, () => client.send(handle));
  }

  /** An actor host, of which only its dispatches are part of this simulation, makes a call. */
  async askAsActor(): Promise<void> {
    const { scheduler, tables } = this;
    const { chance, nowMs } = scheduler;
    const number = this.#next();
    const callId = `trn_${number}`;
    const call = {
      ...{
        v: 1 as const,
        callId,
        origin: '0',
        want: chance.pick(['frames', 'none'] as const),
        surface: 'chat-completions',
        detached: false,
        republished: false,
      },
      ...{ deadlineAtMs: nowMs + config.timeouts.total_ms, createdAtMs: nowMs, traceparent: null, maxTokens: null, request: requestOf(number, true) },
      keyId: keyReferenceOf(keys.agent.hash),
      reply: { sessionId: `ses_${number}`, actorId: callId, turnId: callId, epoch: 1 },
    };
    tables.effects.set(callId, true);
    const process = this.#owner?.process ?? scheduler.process('owner', 'host');
    await scheduler.step(process, `an actor makes call ${number}`, () => {
      this.#owner ??= { process, calls: this.#ownerOn(process) };
      this.#owner.calls.dispatch(call);
    });
  }

  #ownerOn(process: Process): SimulatedOwner {
    const isOpen = (callId: string) => this.tables.effects.get(callId) === true;
    return new SimulatedOwner({ bus: this.#footing(process).bus, isOpen, lastOf: (partition) => this.broker.lastOf(partition) });
  }

  async leave(client: SimulatedClient): Promise<void> {
    const { gateway, asked } = client;
    if (gateway.state !== 'up' || client.isOver) return;
    await this.scheduler.step(gateway, `the client of call ${asked.number} leaves`, () => client.leave());
  }

  kill(process: Process): void {
    this.scheduler.note(`${process.id} dies`);
    this.counts.kills += 1;
    const { chance } = this.scheduler;
    if (chance.oneIn(2)) this.router.wire.cut(process);
    this.broker.forget(process);
    this.router.usage.forget(process);
    this.router.tokens.forget(process);
    this.router.cutAtMs.delete(process);
    this.router.dispatchConsumers = this.router.dispatchConsumers.filter((one) => one.process !== process);
    removeFrom(this.workers, (one) => one === process);
    removeFrom(this.gateways, (one) => one.process === process);
    this.scheduler.kill(process, { evenSent: chance.oneIn(2) });
  }

  pause(process: Process): void {
    if (process.state !== 'up') return;
    this.scheduler.note(`${process.id} stands still`);
    this.counts.pauses += 1;
    process.state = 'paused';
  }

  wake(process: Process): void {
    if (process.state !== 'paused') return;
    this.scheduler.note(`${process.id} goes on`);
    process.state = 'up';
  }

  cutOff(process: Process): void {
    if (this.broker.isCutOff(process)) return;
    this.scheduler.note(`${process.id} is cut off from the broker`);
    this.counts.cutOffs += 1;
    this.scheduler.breakOff(brokerLost, process);
    this.broker.cutOff(process);
    this.router.cutAtMs.set(process, this.scheduler.nowMs);
  }

  reconnect(process: Process): void {
    if (!this.broker.isCutOff(process)) return;
    this.scheduler.note(`${process.id} reaches the broker again`);
    this.router.cutAtMs.delete(process);
    this.broker.reconnect(process);
  }

  restartBroker(): void {
    const { chance } = this.scheduler;
    this.scheduler.note('the broker restarts');
    this.counts.restarts += 1;
    this.scheduler.breakOff(brokerLost);
    const forgets = chance.oneIn(2);
    this.broker.restart({ forgets });
    this.router.usage.restart({ forgets });
    this.cluster.restart();
    this.router.tokens.restart();
  }

  /** Of three servers of the broker one is lost. Senders repeat what is not stored. */
  loseLeader(): void {
    const { broker, cluster, router, scheduler } = this;
    if (!cluster.isCluster) return;
    scheduler.note('the broker loses a server');
    this.counts.leadersLost += 1;
    cluster.loseServer();
    broker.changeLeader(() => scheduler.chance.oneIn(3), UNKNOWN_MS);
    router.usage.restart({ forgets: false });
  }

  /** Two of three servers of the broker are late to store what the third one has. */
  slowBroker(): void {
    if (!this.cluster.isCluster) return;
    this.scheduler.note('the broker is slow');
    this.counts.slowed += 1;
    this.cluster.beSlow();
  }

  /** Queued calls, usage records and frames are gone. An actor host publishes its open calls again, but for those that are dispatched. */
  async loseStore(): Promise<void> {
    const { broker, router, scheduler, watch } = this;
    scheduler.note('the store of the broker is lost');
    this.counts.storesLost += 1;
    scheduler.breakOff(brokerLost);
    for (const { messageId } of broker.items) watch.lost.add(messageId);
    for (const callId of router.usage.lose()) watch.lost.add(callId);
    broker.lose();
    this.cluster.restart();
    router.tokens.restart();
    const owner = this.#owner;
    if (owner !== null) await scheduler.step(owner.process, 'the actor host finds a new queue', () => owner.calls.publishAgain());
  }

  /** Statements fail at once, for some seconds. */
  loseDatabase(forMs: number): void {
    if (this.database.isAway) return;
    this.scheduler.note('the database is away');
    this.counts.outages += 1;
    this.database.breakOff();
    this.database.isAway = true;
    this.scheduler.setTimer(this.broker.process, () => this.recoverDatabase(), forMs, null);
  }

  recoverDatabase(): void {
    if (this.database.isAway) this.scheduler.note('the database is back');
    this.database.isAway = false;
  }

  /** Unfinished work of this schedule; empty when it is over. */
  outstanding(): string[] {
    const found: string[] = [];
    for (const client of this.clients) if (!client.isOver) found.push(`the client of call ${client.asked.number}`);
    for (const { kind, messageId } of this.broker.items) found.push(`${kind} ${messageId}`);
    for (const { process, inFlight } of this.router.dispatchConsumers) if (inFlight > 0) found.push(`dispatched calls at ${process.id}`);
    if (this.router.usage.records.length > 0) found.push('usage records');
    for (const { call_id } of this.tables.reservations.values()) found.push(`reservation ${call_id}`);
    for (const id of this.tables.interims.keys()) found.push(`interim record ${id}`);
    for (const [id, isOpen] of this.tables.effects) if (isOpen) found.push(`effect ${id}`);
    return found;
  }

  #footing(process: Process): RouterFooting {
    const { scheduler, broker, cluster, router, providers } = this;
    return {
      process,
      bus: openRouterBus({ scheduler, broker, cluster, process, comparesPositions: true, router }),
      database: this.database.of(process),
      cache: this.#cache.of(process),
      clock: { nowMs: () => scheduler.nowMs + process.skewMs },
      databaseClock: { nowMs: () => scheduler.nowMs },
      providers,
    };
  }

  #process(role: 'gateway' | 'worker'): Process {
    return this.scheduler.process(`${role}-${this.#next()}`, role, this.scheduler.chance.below(2 * MOST_SKEW_MS) - MOST_SKEW_MS);
  }

  #next(): number {
    this.#numbers += 1;
    return this.#numbers;
  }
}

function removeFrom<One>(list: One[], isRemoved: (one: One) => boolean): void {
  const index = list.findIndex(isRemoved);
  if (index >= 0) list.splice(index, 1);
}
