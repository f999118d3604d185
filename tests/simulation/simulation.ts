import type { CommitPlan } from '../../actors/runtime/apply/commit-plan.ts';
import { initialisePartitions } from '../../actors/runtime/partitions/initialise-partitions.ts';
import type { CommitResult } from '../../actors/store/port/commit-store.ts';
import type { PartitionClaim } from '../../actors/store/port/partition-store.ts';
import type { Bus } from '../../bus/bus.ts';
import { testBundle } from '../../services/actor-host/test-support/commands.ts';
import { policyBundle } from '../../services/actor-host/test-support/policy-bundle.ts';
import { storeBundle } from '../../shared/config/bundle-store.ts';
import { evaluationStore } from '../../shared/config/evaluation-store.ts';
import type { Database, NamedStatement, Queryable, QueryResult } from '../../shared/storage/database.ts';
import { brokerLost } from './broker-lost.ts';
import { commandStream, workStream } from './cluster/broker-streams.ts';
import { ModelCluster } from './cluster/model-cluster.ts';
import { comparingBundle, comparingEvaluations, engineBundle } from './engine-bundle.ts';
import { Environment, TOOLS } from './environment.ts';
import { EventWatch } from './event-rules.ts';
import { comparesVectors, hasEngine, hasEventWebhook, isCluster } from './features-of-seed.ts';
import { Gateway } from './gateway.ts';
import { ModelBroker } from './model-broker.ts';
import { type BusOptions, openModelBus } from './model-bus.ts';
import type { Fence } from './model-commit.ts';
import { ModelDatabase, storeToolServer, storeTools } from './model-database.ts';
import { ModelTables } from './model-rows.ts';
import { FULL_FENCE, modelStore, type Request, type StoreCall, type StoreModel, type Withdrawal } from './model-store.ts';
import { hostOn, workerOn } from './processes.ts';
import { chanceOf } from './random.ts';
import { type Process, Scheduler } from './scheduler.ts';
import { MOST_SKEW_MS, Watch } from './watch.ts';

export interface SimulationOptions {
  seed: number;
  fence?: Fence;
  comparesPositions?: boolean;
  withdrawal?: Withdrawal;
  /** Replaces a worker's bus. */
  busOfWorker?(bus: Bus): Bus;
  /** Executes each call and statement a second time, on a real database, and compares. */
  shadow?: Shadow;
}

/** Executes on both, and compares. @returns the model's answer, or throws its error */
type Compare = (nowMs: number, model: () => unknown) => Promise<unknown>;

export interface Shadow {
  /** What is sent is serialised at once, as the real driver does. */
  call(call: StoreCall): Compare;
  statement(statement: string | NamedStatement, parameters: readonly unknown[]): Compare;
}

interface Host {
  process: Process;
  /** Null until it has opened. */
  stop: (() => Promise<void>) | null;
  isLeaving: boolean;
}

/** The processes and stores of one schedule, and the faults that can be injected. */
export class Simulation {
  readonly scheduler: Scheduler;
  readonly model: StoreModel;
  readonly #database: ModelDatabase;
  readonly watch: Watch;
  readonly broker: ModelBroker;
  /** Of some schedules. The broker of the others is one server. */
  readonly cluster: ModelCluster | null;
  readonly environment: Environment;
  readonly gateway: Gateway;
  readonly hosts: Host[] = [];
  readonly workers: Process[] = [];
  readonly counts = {
    kills: 0,
    pauses: 0,
    noticesLost: 0,
    cutOffs: 0,
    leadersLost: 0,
    hostless: 0,
    slowed: 0,
    turnsWithTools: 0,
    turnsWithSearch: 0,
    turnsWithDocuments: 0,
    turnsWithVectors: 0,
    turnsWithRoutine: 0,
    withEngine: 0,
    messagesPassed: 0,
    messagesWithheld: 0,
    /** Sessions that were in manual mode. */
    takenOver: 0,
    runs: 0,
    runsAsked: 0,
    runsWithTools: 0,
    /** Calls of cancelled runs, and must not be repeated: they happened, or were withdrawn. */
    callsOfCancelled: 0,
    callsWithdrawn: 0,
  };
  readonly #options: SimulationOptions;
  #numbers = 0;
  #lastDead: string | null = null;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.scheduler = new Scheduler(chanceOf(options.seed));
    const { fence = FULL_FENCE, withdrawal = 'binding' } = options;
    this.model = { tables: new ModelTables(), nowMs: () => this.scheduler.nowMs, fence, withdrawal };
    this.#database = new ModelDatabase(this.model.tables, this.model.nowMs, withdrawal);
    this.watch = new Watch(this.scheduler, this.model.tables);
    this.broker = new ModelBroker(this.scheduler, this.watch);
    this.cluster = isCluster(options.seed) ? this.#openCluster() : null;
    this.environment = new Environment(this.scheduler, this.watch, new EventWatch(this.model.tables, this.watch));
    const process = this.scheduler.process('gateway', 'gateway');
    this.gateway = new Gateway({
      scheduler: this.scheduler,
      process,
      bus: this.#busOf(process),
      database: this.#databaseOf(process),
      hasEngine: hasEngine(options.seed),
      comparesVectors: comparesVectors(options.seed),
    });
  }

  /** The initial rows: the partitions, a configuration, the tools. */
  async lay(): Promise<void> {
    await initialisePartitions(modelStore(this.model, async (call, execute) => this.#executed(this.#options.shadow?.call(call), execute)).partitions);
    const query = async (statement: string | NamedStatement, parameters: readonly unknown[] = []) => this.#statement(statement, parameters)();
    for (const bundle of [testBundle, policyBundle, comparingBundle, engineBundle]) await storeBundle({ query } as Queryable, bundle);
    for (const row of comparingEvaluations) await evaluationStore({ query } as Queryable).store(row);
    await query(storeTools, ['h1', JSON.stringify(TOOLS)]);
    for (const { hash } of [engineBundle, comparingBundle]) await query(storeToolServer, [hash, 'shop', 'h1']);
  }

  async startHost({ mayRepeatId = false } = {}): Promise<void> {
    const repeats = mayRepeatId && this.#lastDead !== null && this.scheduler.chance.oneIn(3);
    const id = repeats && this.#lastDead !== null ? this.#lastDead : this.#next('host');
    this.#lastDead = null;
    const skewMs = this.scheduler.chance.below(2 * MOST_SKEW_MS) - MOST_SKEW_MS;
    const process = this.scheduler.process(id, 'host', skewMs);
    const host: Host = { process, stop: null, isLeaving: false };
    this.hosts.push(host);
    await this.scheduler.step(process, `${id} starts`, () => {
      hostOn(this.#dependenciesOf(process)).then(
        ({ stop }) => {
          host.stop = stop;
        },
        // A start that fails ends the process, as in its main.ts.
        () => this.removeHost(host, { evenSent: false }),
      );
    });
  }

  async startWorker(): Promise<void> {
    const process = this.scheduler.process(this.#next('worker'), 'worker', this.scheduler.chance.below(2 * MOST_SKEW_MS) - MOST_SKEW_MS);
    this.workers.push(process);
    await this.scheduler.step(process, `${process.id} starts`, () => workerOn(this.#dependenciesOf(process)));
  }

  /** Begins the drain of a host. */
  async stopHost(host: Host): Promise<void> {
    const { stop } = host;
    if (stop === null || host.isLeaving) return;
    host.isLeaving = true;
    await this.scheduler.step(host.process, `${host.process.id} leaves`, () => {
      stop().then(
        () => this.removeHost(host, { evenSent: false }),
        () => {},
      );
    });
  }

  killHost(host: Host): void {
    this.scheduler.note(`${host.process.id} dies`);
    this.counts.kills += 1;
    // A host can only be restarted under its name once all of its statements have ended.
    const evenSent = this.scheduler.chance.oneIn(2);
    this.removeHost(host, { evenSent });
    this.#lastDead = evenSent ? host.process.id : null;
  }

  removeHost(host: Host, { evenSent }: { evenSent: boolean }): void {
    if (host.process.state === 'dead') return;
    this.hosts.splice(this.hosts.indexOf(host), 1);
    this.broker.forget(host.process);
    this.scheduler.kill(host.process, { evenSent });
  }

  killWorker(process: Process): void {
    this.scheduler.note(`${process.id} dies`);
    this.counts.kills += 1;
    this.workers.splice(this.workers.indexOf(process), 1);
    this.watch.lost(process);
    this.broker.forget(process);
    this.scheduler.kill(process, { evenSent: false });
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

  /** Every host dies, and none starts for longer than most deadlines. */
  loseHosts(): void {
    for (const host of [...this.hosts]) this.killHost(host);
    this.counts.hostless += 1;
  }

  /** The connection of one host to the broker is half-open; its requests are lost, executed or not. */
  cutOff({ process }: Host): void {
    if (this.broker.isCutOff(process)) return;
    this.scheduler.note(`${process.id} is cut off from the broker`);
    this.counts.cutOffs += 1;
    this.scheduler.breakOff(brokerLost, process);
    this.broker.cutOff(process);
  }

  reconnect({ process }: Host): void {
    if (!this.broker.isCutOff(process)) return;
    this.scheduler.note(`${process.id} reaches the broker again`);
    this.broker.reconnect(process);
  }

  restartBroker(): void {
    this.scheduler.note('the broker restarts');
    this.scheduler.breakOff(brokerLost);
    this.broker.restart({ forgets: this.scheduler.chance.oneIn(2) });
    this.cluster?.restart();
  }

  /** One of three servers of the broker is lost: its clients connect to another, and what they had asked was executed or not. */
  loseLeader(): void {
    const { broker, cluster, scheduler } = this;
    scheduler.note('another server of the broker leads');
    this.counts.leadersLost += 1;
    cluster?.loseServer();
    const isLost = () => scheduler.chance.oneIn(3);
    for (const process of scheduler.processes) {
      if (process.state === 'dead' || broker.isCutOff(process) || !isLost()) continue;
      scheduler.breakOff(brokerLost, process);
      broker.reconnected(process);
    }
    broker.changeLeader(isLost);
  }

  /** Two of three servers of the broker are late to store what the third one has. */
  slowBroker(): void {
    this.scheduler.note('the broker is slow');
    this.counts.slowed += 1;
    this.cluster?.beSlow();
  }

  /** The broker's store is rolled back, or lost. */
  loseStore(): void {
    const { broker, cluster, scheduler, watch } = this;
    scheduler.breakOff(brokerLost);
    cluster?.restart();
    if (scheduler.chance.oneIn(3)) {
      scheduler.note('the log is lost');
      watch.losing(() => false);
      broker.lose();
      return;
    }
    const toSequence = Math.max(0, broker.last - 1 - scheduler.chance.below(6));
    scheduler.note('the log is rolled back');
    watch.losing(({ sequence, messageId }) => sequence <= toSequence && broker.at(sequence)?.messageId === messageId);
    broker.rollBack(toSequence);
  }

  /** Unfinished work of this schedule; empty when it is over. */
  outstanding(): string[] {
    const { tables } = this.model;
    const found: string[] = [];
    for (const rows of tables.effects.values()) for (const { id, state } of rows) if (state === 'open') found.push(`effect ${id}`);
    for (const rows of tables.deliveries.values()) for (const { id, state } of rows) if (state === 'open') found.push(`delivery ${id}`);
    for (const { id, state } of tables.runs.values()) if (state !== 'succeeded' && state !== 'failed') found.push(`run ${id} is ${state}`);
    // Also that of a delivery that has settled meanwhile: its round is opened, and ended at once.
    for (const { key } of tables.timers.values()) if ((key as string).endsWith('-due')) found.push(`timer ${key}`);
    for (const { id, snapshot } of tables.sessions.values()) {
      if (!/"session":\{"value":"(idle|deleted)"/.test(snapshot as string)) found.push(`session ${id} is busy`);
    }
    const running = new Set(this.hosts.map(({ process }) => process.id));
    for (const part of tables.parts.values()) {
      const p = part['p'] as number;
      if (this.broker.lastOf(p) > (part['cursor'] as number)) found.push(`commands of partition ${p}`);
      if (!running.has(part['owner'] as string)) found.push(`partition ${p} has no owner`);
    }
    if (this.broker.items.length > 0) found.push('items');
    // A cursor may stand beyond commands that are not read yet.
    if (found.length === 0) found.push(...this.watch.unapplied());
    return found;
  }

  /** Sends a question to every partition, which its owners answer. */
  askOwners(): void {
    this.watch.owners.clear();
    for (const p of this.model.tables.parts.keys()) {
      this.broker.publishNotice(this.broker.process, `hb.${p}`, JSON.stringify({ v: 1, workerId: 'probe', question: 1, calls: [] }));
    }
  }

  /** Only the owner by its row answers for a partition. */
  conflicts(): string[] {
    const found: string[] = [];
    for (const { p, owner } of this.model.tables.parts.values()) {
      const answering = this.watch.owners.get(p as number) ?? [];
      if (answering.join() !== owner) found.push(`partition ${p} is ${owner}’s, and for it answers ${answering.join(' and ') || 'no host'}`);
    }
    return found;
  }

  #dependenciesOf(process: Process) {
    const bus = this.#busOf(process);
    const clock = { nowMs: () => this.scheduler.nowMs + process.skewMs };
    const given = process.role === 'worker' ? (this.#options.busOfWorker?.(bus) ?? bus) : bus;
    const store = modelStore(this.model, this.#requestOf(process));
    return {
      process,
      bus: given,
      store,
      database: this.#databaseOf(process),
      clock,
      environment: this.environment,
      hasEventWebhook: hasEventWebhook(this.#options.seed),
    };
  }

  #openCluster(): ModelCluster {
    const { scheduler, broker, watch } = this;
    const stores = { work: workStream(broker), cmd: commandStream(broker) };
    return new ModelCluster({ scheduler, broker, isCluster: true, stores, breach: (rule, what) => watch.breach(rule, what) });
  }

  #busOf(process: Process): Bus {
    const { scheduler, broker, cluster } = this;
    const options: BusOptions = { scheduler, broker, cluster, process, comparesPositions: this.#options.comparesPositions ?? true };
    return openModelBus(options);
  }

  /** Executed at its step, once or later, and answered then, later or never. */
  #requestOf(process: Process): Request {
    return (call, execute) => {
      const compare = this.#options.shadow?.call(call);
      const watch = call.name === 'commits.commit' ? this.watch.commit(call.args[0] as CommitPlan) : null;
      return this.scheduler.park(process, call.name, databaseLost, () => {
        const done = watch?.begin();
        const seen = (result: unknown) => {
          done?.(result as CommitResult);
          if (call.name === 'partitions.acquire') this.watch.acquired(result as PartitionClaim[]);
          return result;
        };
        const result = this.#executed(compare, execute);
        return result instanceof Promise ? result.then(seen) : seen(result);
      });
    };
  }

  #databaseOf(process: Process): Database {
    return {
      query: <Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []) => {
        const label = typeof statement === 'string' ? statement : statement.name;
        return this.scheduler.park<QueryResult<Row>>(process, label, databaseLost, this.#statement(statement, parameters));
      },
      transaction: async () => {
        throw new TypeError('nothing here needs a transaction');
      },
      close: async () => {},
    };
  }

  #statement(statement: string | NamedStatement, parameters: readonly unknown[]): () => unknown {
    const compare = this.#options.shadow?.statement(statement, parameters);
    return () => this.#executed(compare, () => this.#database.execute(statement, parameters));
  }

  #executed(compare: Compare | undefined, execute: () => unknown): unknown {
    return compare === undefined ? execute() : compare(this.scheduler.nowMs, execute);
  }

  #next(what: string): string {
    this.#numbers += 1;
    return `${what}-${this.#numbers}`;
  }
}

function databaseLost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
}
