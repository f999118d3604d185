import type { Bus } from '../../bus/bus.ts';
import { moderationModes, type NoticeMessage, type SessionCommand } from '../../bus/messages/session.ts';
import { partitionOf } from '../../bus/partition.ts';
import {
  cancel,
  create,
  deleteEvents,
  patch,
  patchEvent,
  post,
  remove,
  start,
  testBundle,
  toolEvent,
} from '../../services/actor-host/test-support/commands.ts';
import { policyBundle } from '../../services/actor-host/test-support/policy-bundle.ts';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { Queryable } from '../../shared/storage/database.ts';
import { comparingBundle, engineBundle } from './engine-bundle.ts';
import { type AcceptedRow, acceptedValues, acceptRun } from './model-database.ts';
import type { Process, Scheduler } from './scheduler.ts';
import { WebhookSender } from './webhook-sender.ts';

/** Sessions of one schedule. Few, so that each gets many commands; some share a partition. */
const SESSIONS = 3;
/** The one that may talk to the agent with policies, a routine and tools; another one has policies alone. */
const ENGINE_SESSION = 'ses_2';
/** Tries of a gateway to store a command, after which it refuses the request. */
const TRIES = 3;
const RETRY_MS = 200;

export interface AcceptedRun {
  id: string;
  sessionId: string;
  ephemeral: boolean;
  hasCallback: boolean;
}

interface GatewayDeps {
  scheduler: Scheduler;
  process: Process;
  bus: Bus;
  database: Queryable;
  /** One session talks to an agent with policies, a routine and tools. */
  hasEngine: boolean;
  /** Of that agent. */
  comparesVectors: boolean;
}

/** The source of commands: a gateway with its callers, some of which repeat requests, and senders of commands that no gateway would send. */
export class Gateway {
  readonly #deps: GatewayDeps;
  readonly runs: AcceptedRun[] = [];
  readonly webhooks: WebhookSender;
  /** Message ids of unprocessable commands. */
  readonly poison = new Set<string>();
  readonly #sent: SessionCommand[] = [];
  readonly #starts: SessionCommand[] = [];
  /** Events that were announced. */
  readonly #known: { sessionId: string; id: string; offset: number }[] = [];
  #favourite = 'ses_1';
  #numbers = 0;

  get hasEngine(): boolean {
    return this.#deps.hasEngine;
  }

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
    this.webhooks = new WebhookSender({ ...deps, started: (run) => this.runs.push(run) });
    deps.bus.notices.subscribe('evt.*', (subject, body) => this.#onNotice(subject.slice('evt.'.length), body));
  }

  /** Creates all sessions but the last, which a later command may create. */
  open(): void {
    for (let session = 1; session < SESSIONS; session += 1)
      this.#send({ ...create(`ses_${session}`), commandId: this.#next('create'), ...eventWebhookOf(session) });
    if (this.#deps.hasEngine) this.#post(ENGINE_SESSION);
  }

  /** The hash of the configuration of a session's turns. */
  bundleOf(session: string): string {
    if (session === 'ses_1') return policyBundle.hash;
    if (session !== ENGINE_SESSION || !this.#deps.hasEngine) return testBundle.hash;
    return this.#deps.comparesVectors ? comparingBundle.hash : engineBundle.hash;
  }

  /** Sends one random request. */
  sendRequest(): void {
    const { chance } = this.#deps.scheduler;
    if (chance.oneIn(14)) this.webhooks.send();
    else this.#sendCommand();
  }

  #sendCommand(): void {
    const { chance } = this.#deps.scheduler;
    // Mostly the session of the last request again.
    if (chance.oneIn(2)) this.#favourite = this.hasEngine && chance.oneIn(2) ? ENGINE_SESSION : `ses_${chance.below(SESSIONS)}`;
    const session = this.#favourite;
    const what = chance.below(100);
    if (what < 40) this.#post(session);
    else if (what < 45) this.#inject(session);
    else if (what < 47) this.#cancelRun();
    else if (what < 70) this.#startRun(session);
    else if (what < 75) this.#changeLog();
    else if (what < 79) this.#send({ ...create(session), commandId: this.#next('create'), mode: chance.oneIn(4) ? 'manual' : 'auto' });
    else if (what < 83) this.#changeRecord(session);
    else if (what < 85) this.#send({ ...remove(session), commandId: this.#next('delete') });
    else if (what < 92) this.#repeat();
    else if (what < 96) this.#sendStart();
    else this.#sendPoison(session);
  }

  /** Sends every command that was put off, and a message for a last turn. */
  finish(): void {
    if (this.hasEngine) this.#post(ENGINE_SESSION);
    for (const command of this.#starts.splice(0)) this.#send(command);
  }

  #post(session: string): void {
    const commandId = this.#next('post');
    const triggersTurn = !this.#deps.scheduler.chance.oneIn(6);
    const traceId = String(this.#numbers).padStart(32, '0');
    const checked = this.#deps.scheduler.chance.oneIn(4) && ({ v: 3, moderation: this.#deps.scheduler.chance.pick(moderationModes) } as const);
    this.#send({ ...post(session, `message ${commandId}`), ...checked, commandId, traceId, triggersTurn, bundleHash: this.bundleOf(session) });
  }

  /** Every third change takes the session over from the agent, and every third hands it back. */
  #changeRecord(session: string): void {
    const commandId = this.#next('patch');
    const mode = [undefined, 'manual', 'auto'][this.#numbers % 3] as 'manual' | 'auto' | undefined;
    this.#send(patch(session, commandId, { title: `title ${this.#numbers}`, upsertLabels: ['seen'], ...(mode && { mode }) }));
  }

  #inject(session: string): void {
    const key = this.#next('tool');
    const traceId = String(this.#numbers).padStart(32, '0');
    this.#send(toolEvent(session, key, { traceId, triggersTurn: !this.#deps.scheduler.chance.oneIn(3), bundleHash: this.bundleOf(session) }));
  }

  #startRun(session: string): void {
    const { chance } = this.#deps.scheduler;
    const id = this.#next('run');
    const ephemeral = chance.oneIn(2);
    const run = { id, sessionId: ephemeral ? `ses_of_${id}` : session, ephemeral, hasCallback: !chance.oneIn(4) };
    const command = start(run.sessionId, id);
    // Its start may never reach the log, or reach it late: the row is the promise.
    const fate = chance.below(4);
    this.#do(async () => {
      await this.#accept(run);
      this.runs.push(run);
      if (fate === 1) this.#starts.push(command);
      else if (fate !== 0) await this.#store(command, command.commandId);
    });
  }

  #cancelRun(): void {
    if (this.runs.length > 0) this.cancel(this.#deps.scheduler.chance.pick(this.runs));
  }

  cancel({ id, sessionId }: Pick<AcceptedRun, 'id' | 'sessionId'>): void {
    this.#send(cancel(sessionId, id));
  }

  /** Patches or deletes from an event that was announced; often one that cannot be deleted from, or is deleted. */
  #changeLog(): void {
    const { chance } = this.#deps.scheduler;
    if (this.#known.length === 0) return;
    const { sessionId, id, offset } = chance.pick(this.#known);
    if (chance.oneIn(3)) this.#send(patchEvent(sessionId, this.#next('event-patch'), id, { number: this.#numbers }, chance.oneIn(2) ? ['number'] : []));
    else this.#send(deleteEvents(sessionId, this.#next('cut'), offset, chance.oneIn(2)));
  }

  #onNotice(sessionId: string, body: string): void {
    const { events } = JSON.parse(body) as NoticeMessage;
    for (const text of events ?? []) {
      const { id, offset, kind } = JSON.parse(text) as ConversationEvent;
      // The first of a trace, mostly.
      if (kind !== 'status') this.#known.push({ sessionId, id, offset });
    }
  }

  async #accept({ id, sessionId, ephemeral, hasCallback }: AcceptedRun): Promise<void> {
    const { scheduler, database } = this.#deps;
    const { chance, nowMs } = scheduler;
    const timeoutMs = chance.pick([60_000, 60_000, 10_000]);
    const row: AcceptedRow = {
      ...{
        id,
        p: partitionOf(sessionId),
        session_id: sessionId,
        customer_id: ephemeral ? `cus_of_${id}` : 'cus_1',
        ephemeral,
        idempotency_key: id,
        bundle_hash: testBundle.hash,
      },
      routine_id: chance.pick(['triage', 'refund', 'refund', 'refund']),
      input: JSON.stringify({ claim: chance.oneIn(10) ? 7 : 'broken' }),
      metadata: JSON.stringify({ order: 7 }),
      callback_url: hasCallback ? 'https://example.com/callback' : null,
      trace_id: `f${id.replace(/\D/g, '').padStart(31, '0')}`,
      timeout_ms: timeoutMs,
      expires_at: new Date(nowMs + 2 * timeoutMs),
      created_at: new Date(nowMs),
    };
    await database.query(acceptRun, acceptedValues(row));
  }

  /** Repeats a command, under the same message id or another: it must be applied once. */
  #repeat(): void {
    const { chance } = this.#deps.scheduler;
    if (this.#sent.length === 0) return;
    const command = chance.pick(this.#sent);
    this.#send(command, chance.oneIn(2) ? command.commandId : this.#next('again'));
  }

  #sendStart(): void {
    const command = this.#starts.shift();
    if (command !== undefined) this.#send(command);
  }

  #sendPoison(session: string): void {
    const { scheduler, bus } = this.#deps;
    const messageId = this.#next('poison');
    const bodies = [
      '{"v":1,"type":"no such thing"}',
      'no JSON',
      JSON.stringify({ ...post(session, 'x'), commandId: `nul \0 ${messageId}` }),
      JSON.stringify(post(sessionBeside(session), 'x')),
    ];
    this.poison.add(messageId);
    this.#do(async () => {
      await bus.commands.append(partitionOf(session), messageId, scheduler.chance.pick(bodies));
    });
  }

  #send(command: SessionCommand, messageId = command.commandId): void {
    this.#sent.push(command);
    this.#do(() => this.#store(command, messageId));
  }

  async #store(command: SessionCommand, messageId: string): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#deps.bus.commands.append(partitionOf(command.sessionId), messageId, JSON.stringify(command));
        return;
      } catch (error) {
        // The request is refused: whether it was stored is unknown.
        if (tries === TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  #do(work: () => Promise<void>): void {
    work().catch(() => {});
  }

  #next(what: string): string {
    this.#numbers += 1;
    return `${what}_${this.#numbers}`;
  }
}

/** One of the sessions has an event webhook of its own. */
function eventWebhookOf(session: number): { eventWebhookUrl?: string } {
  return session === 1 ? { eventWebhookUrl: 'https://example.com/own-events' } : {};
}

/** A session of another partition. */
function sessionBeside(session: string): string {
  for (let number = 1; ; number += 1) {
    const other = `${session}_${number}`;
    if (partitionOf(other) !== partitionOf(session)) return other;
  }
}
