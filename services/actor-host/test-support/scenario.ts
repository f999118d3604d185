import type { EffectRow } from '#actors/effects/effect-row.ts';
import { effects } from '#actors/effects/registry.ts';
import type { WorkKind } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { deliveryWork } from '#bus/messages/delivery.ts';
import { routerCall } from '#bus/messages/router.ts';
import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { toolWork } from '#bus/messages/tool.ts';
import { partitionOf } from '#bus/partition.ts';
import { calledTools, completed, create, post, remove, start } from './commands.ts';
import { SESSIONS, type Step } from './scenario-steps.ts';
import { eventually, type HostUnderTest, type TestCluster } from './test-cluster.ts';

/** More hosts do not help: few sessions have few partitions to contend for. */
const MAX_HOSTS = 3;
/** Short, so that a scenario has several take-overs; on a busy machine hosts sometimes drop their partitions. */
const TIMES = { beatMs: 40, expiresAfterMs: 320, dropAfterMs: 260 };
const COALESCE_MS = 30;
/** A host that is silent for `expiresAfterMs` has lost its partitions about a heartbeat later, unless no other host is left. */
const OVERSLEPT_WITHIN_MS = 600;
/** At the end everything outstanding is answered at once; more time means a hang. */
const END_WITHIN_MS = 20_000;
/** Timers of delivery back-offs. */
const DUE = `command->>'type' = 'delivery.due'`;
const HEADER = { v: 1 as const, sentAtMs: 0, answerTo: null, traceparent: null };

/** An item in flight at a worker. */
interface Item {
  effectId: string;
  sessionId: string;
  owner: string;
  kind: 'turn-call' | 'run-call' | 'tool-list' | 'tool-call' | 'delivery';
}

interface ScenarioRun {
  id: string;
  sessionId: string;
  ephemeral: boolean;
  hasCallback: boolean;
}

/** The steps taken, for `checkRules`. */
export interface Trace {
  /** In the order of the log. */
  commands: SessionCommand[];
  runs: ScenarioRun[];
}

/** Runs steps on a test cluster: acts as gateways, workers and fault injector. */
export class Scenario {
  readonly #cluster: TestCluster;
  readonly #hosts: HostUnderTest[] = [];
  readonly #crashed: HostUnderTest[] = [];
  readonly #stoppingHosts: Promise<void>[];
  readonly #items: Item[] = [];
  readonly #reports: SessionCommand[] = [];
  readonly #starts: CommandOf<'run.start'>[] = [];
  readonly trace: Trace = { commands: [], runs: [] };
  #messages = 0;

  /** @param stoppingHosts dead hosts that are still closing */
  constructor(cluster: TestCluster, stoppingHosts: Promise<void>[]) {
    this.#cluster = cluster;
    this.#stoppingHosts = stoppingHosts;
  }

  async begin(): Promise<void> {
    const tools = [{ name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }];
    await this.#cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1)`, [JSON.stringify(tools)]);
    this.#work('router.turn', (body) => {
      const { callId, reply, origin } = routerCall.parse(body);
      const owner = reply?.actorId ?? '';
      return { effectId: callId, sessionId: origin, owner, kind: owner.startsWith('trn_') ? 'turn-call' : 'run-call' };
    });
    this.#work('tool', (body) => {
      const { effectId, sessionId, actorId, type } = toolWork.parse(body);
      return { effectId, sessionId, owner: actorId, kind: type === 'list' ? 'tool-list' : 'tool-call' };
    });
    this.#work('delivery', (body) => {
      const { effectId, sessionId, deliveryId } = deliveryWork.parse(body);
      return { effectId, sessionId, owner: deliveryId, kind: 'delivery' };
    });
    // Session 0 may be created by a step; without the others most messages would be refused.
    for (let session = 1; session < SESSIONS; session += 1) await this.#send({ ...create(nameOf(session)), commandId: `create-${this.#next()}` }, 1);
    await this.#start();
  }

  #work(kind: WorkKind, itemOf: (body: unknown) => Item): void {
    this.#cluster.bus.work.consume(kind, { concurrency: 50, ackWaitMs: 30_000 }, async (item) => {
      await item.ack();
      this.#items.push(itemOf(JSON.parse(item.body)));
    });
  }

  async do(step: Step): Promise<void> {
    switch (step.do) {
      case 'create':
        return this.#send({ ...create(nameOf(step.session)), commandId: `create-${this.#next()}`, mode: step.mode }, step.copies);
      case 'post':
        await pause(step.gapMs);
        return this.#send({ ...post(nameOf(step.session), `message ${this.#next()}`), triggersTurn: step.triggersTurn }, step.copies);
      case 'run':
        return this.#run(step);
      case 'delete':
        return this.#send({ ...remove(nameOf(step.session)), commandId: `delete-${this.#next()}` }, 1);
      case 'answer':
        return this.#answer(step.item, step.how, step.copies);
      case 'repeat':
        return this.#repeat(step.report);
      case 'ring':
        return this.#ring(step.timer, step.copies);
      case 'overdue':
        return this.#makeOverdue(step.timer);
      case 'fault':
        at(this.#hosts, step.host)?.faults.push(step.fault);
        return;
      case 'oversleep':
        return this.#oversleep(nameOf(step.session));
      case 'wait':
        return pause(step.ms);
      default:
        return this.#doToHosts(step);
    }
  }

  /** Answers everything outstanding with an undisturbed host, until nothing changes. */
  async end(): Promise<void> {
    for (const host of this.#hosts) {
      host.faults.length = 0;
      host.wake();
    }
    await this.#start();
    for (const host of this.#hosts.splice(0, this.#hosts.length - 1)) await host.stop();
    for (const command of this.#starts.splice(0)) await this.#send(command, 1);
    let outstanding: string[] = [];
    const isOver = async () => {
      while (this.#items.length > 0) await this.#answer(0, 0, 1);
      // Ends back-offs at once.
      for (const { command } of await this.#dueTimers()) await this.#send(command, 1);
      outstanding = await this.#outstanding();
      return outstanding.length === 0;
    };
    await eventually(isOver, END_WITHIN_MS).catch((cause: unknown) => {
      throw new Error(`outcomes d, e: silence; what never came to its end: ${outstanding.join(', ')}`, { cause });
    });
  }

  async close(): Promise<void> {
    for (const host of this.#crashed) this.#stoppingHosts.push(host.discard());
    await this.#cluster.close();
  }

  async #outstanding(): Promise<string[]> {
    const busy = await this.#cluster.rows<{ what: string }>(
      `select 'effect ' || id as what from effects where state = 'open'
       union all select 'delivery ' || id from deliveries where state = 'open'
       union all select 'timer ' || key from timers where ${DUE}
       union all select state || ' run ' || id from runs where state not in ('succeeded', 'failed')
       union all select 'session ' || id from sessions where snapshot->'session'->>'value' not in ('idle', 'deleted')`,
    );
    const found = [...busy.map(({ what }) => what), ...this.#items.map(({ effectId }) => `item ${effectId}`)];
    const cursors = await this.#cluster.rows<{ p: number; cursor: number }>('select p, cursor from parts');
    for (const { p, cursor } of cursors) if ((await this.#cluster.bus.commands.lastOf(p)) > cursor) found.push(`commands of partition ${p}`);
    return found;
  }

  async #doToHosts(step: Extract<Step, { do: 'kill' | 'pause' | 'wake' | 'stop' | 'start' }>): Promise<void> {
    if (step.do === 'start') {
      if (this.#hosts.length < MAX_HOSTS) await this.#start(step.sameId ? this.#crashed.at(-1)?.id : undefined);
      return;
    }
    const host = at(this.#hosts, step.host);
    if (host === undefined) return;
    if (step.do === 'pause') return host.pause();
    if (step.do === 'wake') return host.wake();
    this.#hosts.splice(this.#hosts.indexOf(host), 1);
    if (step.do === 'stop') return host.stop();
    host.crash();
    host.wake();
    this.#crashed.push(host);
  }

  /**
   * Pauses a session's host with a commit in flight until another host acquires the partition. Then the commit arrives before any of
   * the new owner's: only its epoch makes it fail.
   */
  async #oversleep(sessionId: string): Promise<void> {
    const partition = partitionOf(sessionId);
    const [row] = await this.#cluster.rows<{ owner: string | null }>('select owner from parts where p = $1', [partition]);
    const host = this.#hosts.find(({ id }) => id === row?.owner);
    if (host === undefined) return;
    if (this.#hosts.length < 2) await this.#start();
    const taken = this.#cluster.fence.nextAcquire(partition);
    host.faults.unshift('sleep');
    await this.#send(post(sessionId, `message ${this.#next()}`), 1);
    await Promise.race([taken, pause(OVERSLEPT_WITHIN_MS)]);
    host.faults.splice(0, host.faults.length, ...host.faults.filter((fault) => fault !== 'sleep'));
    host.wake();
  }

  async #start(hostId?: string): Promise<void> {
    // Hosts that died at a commit count as dead too.
    for (const host of this.#hosts.filter((candidate) => candidate.isCrashed())) {
      this.#hosts.splice(this.#hosts.indexOf(host), 1);
      this.#crashed.push(host);
    }
    const id = hostId ?? `host-${this.#next()}`;
    this.#hosts.push(await this.#cluster.host({ hostId: id, coalesceMs: COALESCE_MS, times: TIMES, purgeEveryMs: 100 }));
  }

  async #run(step: Extract<Step, { do: 'run' }>): Promise<void> {
    const id = `run_${this.#next()}`;
    const sessionId = step.ephemeral ? `ses_of_${id}` : nameOf(step.session);
    this.trace.runs.push({ id, sessionId, ephemeral: step.ephemeral, hasCallback: step.hasCallback });
    await this.#cluster.acceptRun({
      id,
      sessionId,
      ephemeral: step.ephemeral,
      routineId: step.routineId,
      timeoutMs: step.timeoutMs,
      expiresInMs: 2 * step.timeoutMs,
      input: { claim: step.isValid ? 'broken' : 7 },
      traceId: this.#next().toString().padStart(32, 'f'),
      ...(step.hasCallback ? {} : { callbackUrl: null }),
    });
    const command = start(sessionId, id);
    if (step.start === 'sent') await this.#send(command, step.copies);
    else if (step.start === 'later') this.#starts.push(command);
  }

  async #answer(index: number, how: number, copies: number): Promise<void> {
    const [item] = this.#items.splice(Math.min(index, this.#items.length - 1), 1);
    if (item === undefined) return;
    const report = reportOf(item, how);
    this.#reports.push(report);
    await this.#send(report, copies);
  }

  async #repeat(index: number): Promise<void> {
    const report = at(this.#reports, index);
    if (report !== undefined) await this.#send(report, 1);
  }

  async #ring(index: number, copies: number): Promise<void> {
    const timer = at(await this.#timers(), index);
    if (timer !== undefined) await this.#send(timer.command, copies);
  }

  async #makeOverdue(index: number): Promise<void> {
    const timer = at(await this.#timers(), index);
    if (timer === undefined) return;
    await this.#cluster.rows(`update timers set due_at = now() - interval '1 second' where p = $1 and key = $2`, [timer.p, timer.key]);
    // Of a timer without a row, which the next owner derives.
    await this.#cluster.rows(
      `update effects set inputs = (inputs::jsonb || '{"deadlineAtMs": 1}')::json where state = 'open' and kind = 'router-call' and turn_id || '-deadline' = $1`,
      [timer.key],
    );
  }

  /** Those with a row, then those of open effects. */
  async #timers(): Promise<{ p: number; key: string; command: SessionCommand }[]> {
    const rows = await this.#cluster.rows<{ p: number; key: string; command: SessionCommand }>('select p, key, command from timers order by key');
    const open = await this.#cluster.rows<Pick<EffectRow, 'id' | 'sessionId' | 'actorId' | 'kind' | 'inputs'> & { p: number }>(
      `select p, id, session_id as "sessionId", turn_id as "actorId", kind, inputs from effects where state = 'open' order by id`,
    );
    const derived = open.flatMap(({ p, ...effect }) => effects.timersOf({ ...effect, partition: p, createdAtMs: 0 }));
    const missing = derived.filter(({ key }) => rows.every((row) => row.key !== key));
    return [...rows, ...missing.map(({ partition: p, key, command }) => ({ p, key, command: JSON.parse(command) as SessionCommand }))];
  }

  #dueTimers(): Promise<{ command: SessionCommand }[]> {
    return this.#cluster.rows(`select command from timers where ${DUE} order by key`);
  }

  async #send(command: SessionCommand, copies: number): Promise<void> {
    this.trace.commands.push(command);
    for (let copy = 0; copy < copies; copy += 1) await this.#cluster.send(command, `${command.commandId}-${this.#next()}`);
  }

  #next(): number {
    this.#messages += 1;
    return this.#messages;
  }
}

/** 0 is always success. */
function reportOf({ effectId, sessionId, owner, kind }: Item, how: number): SessionCommand {
  const base = { ...HEADER, sessionId, commandId: effectId, callId: effectId };
  const turn = { ...base, ...actorFields(owner) };
  const failed = { ...turn, type: 'call.failed' as const, failure: { code: 'router.provider_unavailable', message: 'no', details: {} } };
  const said = { ...completed(sessionId, effectId, ''), ...actorFields(owner) };
  switch (kind) {
    case 'turn-call':
      if (how >= 85) return how >= 93 ? failed : said;
      return { ...said, text: `a reply to ${effectId}` };
    case 'run-call': {
      const call = (name: string, args: object) => ({ ...calledTools(sessionId, effectId, [{ id: 'c', name, arguments: args }]), ...actorFields(owner) });
      if (how < 30) return call('emit_output', { verdict: 'refund' });
      if (how < 40) return call('emit_output', { verdict: 7 });
      if (how < 50) return { ...said, text: 'only text' };
      if (how < 58) return said;
      if (how < 62) return failed;
      return {
        ...calledTools(
          sessionId,
          effectId,
          [1, 2].map((n) => ({ id: `c${n}`, name: 'shop__find', arguments: { n } })),
        ),
        ...actorFields(owner),
      };
    }
    case 'tool-list':
      if (how >= 90) return { ...turn, type: 'tools.listed', lists: {}, unavailable: { shop: 'unreachable' } };
      return { ...turn, type: 'tools.listed', lists: { shop: 'h1' }, unavailable: {} };
    case 'tool-call':
      if (how >= 95) return { ...turn, type: 'tool.completed', outcome: { type: 'failed', reason: 'unreachable', message: 'gone' } };
      if (how >= 85) return { ...turn, type: 'tool.completed', outcome: { type: 'failed', reason: 'timeout', message: 'late' } };
      return { ...turn, type: 'tool.completed', outcome: { type: 'result', data: { effectId }, metadata: {}, isError: false } };
    case 'delivery': {
      const outcome = how < 60 ? ('delivered' as const) : how < 80 ? ('failed' as const) : ('exhausted' as const);
      return { ...base, type: 'delivery.reported', deliveryId: owner, attempts: 1, outcome, reason: null, retryAfterMs: null };
    }
  }
}

function nameOf(session: number): string {
  return `ses_${session % SESSIONS}`;
}

function at<Value>(list: readonly Value[], index: number): Value | undefined {
  return list[index % Math.max(1, list.length)];
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
