import type { MsgHdrs } from '@nats-io/transport-node';
import { fromWireId } from '../../../bus/nats/connection/wire-id.ts';
import type { Process, Scheduler, SimulatedTimer } from '../scheduler.ts';
import { StoredMessages } from './stored-messages.ts';

/** As the streams are declared. A server remembers the id of a message for so long that it has not stored, too. */
const DEDUPE_WINDOW_MS = 120_000;
const SERVERS = 3;

/** What a server answers: the acknowledgement of a publish, or an error of JetStream. */
export type Answer = { seq: number; duplicate?: true } | { error: { code: number; err_code: number; description: string } };
/** Null: no server has the stream's subject. */
export type Reply = (answer: Answer | null) => void;

/** A message on its way to a stream, under an id of the dedupe window. */
export interface Published {
  subject: string;
  wireId: string;
  body: string;
  headers: MsgHdrs | undefined;
}

/** What a stream has stored, which all of its servers have. */
export interface StreamStore {
  /** Within the dedupe window; null: there is none. */
  sequenceOf(wireId: string): number | null;
  /** @returns its sequence, or why it is refused */
  store(message: Published): Answer;
}

/** How a leader is lost. */
export interface Loss {
  /** Until the election. */
  electedMs: number;
  /** After it, until the loss is noticed: nothing is answered. */
  silentMs: number;
  /** After that. */
  leaderlessMs: number;
}

export interface StreamOptions {
  scheduler: Scheduler;
  broker: Process;
  store: StreamStore;
  /** Whether an id that is in process is answered with an error, and forgotten at an election, as from nats-server 2.11 on (docs/adr/0134). */
  isNewer: boolean;
  /** Of all streams. */
  counts: ClusterCounts;
  breach(rule: string, what: string): void;
}

/** What publishes have met. */
export interface ClusterCounts {
  noResponders: number;
  inProcess: number;
  dropped: number;
  storedAgain: number;
}

const NO_LEADER: Answer = { error: { code: 503, err_code: 10_008, description: 'JetStream system temporarily unavailable' } };
const IN_PROCESS: Answer = { error: { code: 400, err_code: 10_158, description: 'message id is in process' } };

/**
 * A stream as its publishers see it. Of a cluster a server leads it: it notes the id of a message, and stores and answers it once the other servers have it
 * too, in order, at once or late. An election drops what they do not have; the note remains at the server that led.
 */
export class ModelStream {
  readonly #options: StreamOptions;
  /** What the leader has and the other servers do not have yet, in order. */
  #pending: { message: Published; reply: Reply }[] = [];
  /** By server: ids that it has noted and not stored, and when. */
  readonly #notes = Array.from({ length: SERVERS }, () => new Map<string, number>());
  readonly #stored = new StoredMessages();
  #leader = 0;
  /** The end of a time in which it stores nothing. */
  #late: SimulatedTimer | null = null;
  #silentUntilMs = 0;
  #leaderlessUntilMs = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  receive(message: Published, reply: Reply): void {
    const { nowMs } = this.#options.scheduler;
    if (nowMs < this.#silentUntilMs) return;
    const answer = this.#answerAtOnce(message.wireId);
    if (answer !== undefined) reply(answer);
    else if (this.#late === null) this.#store(message, reply);
    else {
      this.#notes[this.#leader]?.set(message.wireId, nowMs);
      this.#pending.push({ message, reply });
    }
  }

  /** @returns undefined: the message has to be stored */
  #answerAtOnce(wireId: string): Answer | null | undefined {
    const { scheduler, store, isNewer, counts } = this.#options;
    const { nowMs, chance } = scheduler;
    if (nowMs < this.#leaderlessUntilMs) {
      counts.noResponders += 1;
      return chance.oneIn(4) ? NO_LEADER : null;
    }
    const sequence = store.sequenceOf(wireId);
    if (sequence !== null) return { seq: sequence, duplicate: true };
    if (!this.#isNoted(wireId)) return undefined;
    counts.inProcess += 1;
    this.#stored.inProcess(wireId, nowMs);
    return isNewer ? IN_PROCESS : { seq: 0, duplicate: true };
  }

  /** The other servers are late: what is published is stored and answered after the time. */
  beSlow(forMs: number): void {
    if (this.#late === null) this.#beLate(forMs, () => this.#catchUp());
  }

  /** The leader is lost: what it receives from now on reaches the other servers late or never. They elect one of them after the time, or the same again. */
  lose(loss: Loss): void {
    this.#beLate(loss.electedMs, () => this.#elect(loss));
  }

  /** A publisher takes the message as stored. */
  confirmed(messageId: string): void {
    if (!this.#stored.has(messageId)) this.#options.breach('stored', `${messageId} counts as stored, and the broker has not got it`);
  }

  /** There is a leader, which has what it needs. */
  recover(): void {
    this.#silentUntilMs = 0;
    this.#leaderlessUntilMs = 0;
    this.#catchUp();
  }

  /** All servers start again. What was not stored is gone. */
  restart(): void {
    this.#pending = [];
    for (const notes of this.#notes) notes.clear();
    this.recover();
  }

  #beLate(forMs: number, then: () => void): void {
    const { scheduler, broker } = this.#options;
    if (this.#late !== null) scheduler.clear(this.#late);
    this.#late = scheduler.setTimer(broker, then, forMs, null);
  }

  /** The other servers have the first of what is pending, whose answers may be lost. */
  #elect({ silentMs, leaderlessMs }: Loss): void {
    const { scheduler, isNewer, counts } = this.#options;
    const { chance, nowMs } = scheduler;
    const pending = this.#pending.splice(0);
    this.#late = null;
    const kept = pending.splice(0, chance.below(pending.length + 1));
    for (const { message, reply } of kept) this.#store(message, chance.oneIn(2) ? reply : () => {});
    for (const { message } of pending) scheduler.note(`${message.wireId} is dropped by an election`);
    counts.dropped += pending.length;
    if (isNewer) for (const notes of this.#notes) notes.clear();
    if (chance.oneIn(2)) this.#leader = chance.below(SERVERS);
    this.#silentUntilMs = nowMs + silentMs;
    this.#leaderlessUntilMs = this.#silentUntilMs + leaderlessMs;
  }

  #catchUp(): void {
    if (this.#late !== null) this.#options.scheduler.clear(this.#late);
    this.#late = null;
    for (const { message, reply } of this.#pending.splice(0)) this.#store(message, reply);
  }

  #store(message: Published, reply: Reply): void {
    const { store, breach, counts } = this.#options;
    const answer = store.store(message);
    if (fromWireId(message.wireId) !== message.wireId) counts.storedAgain += 1;
    for (const notes of this.#notes) notes.delete(message.wireId);
    if ('seq' in answer) this.#stored.add(message.wireId, (what) => breach('doubled', what));
    reply(answer);
  }

  #isNoted(wireId: string): boolean {
    const atMs = this.#notes[this.#leader]?.get(wireId);
    return atMs !== undefined && this.#options.scheduler.nowMs - atMs < DEDUPE_WINDOW_MS;
  }
}
