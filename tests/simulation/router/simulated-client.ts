import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorCatalogue, failureOf } from '../../../shared/errors/switchyard-error.ts';
import type { CallerKey } from '../../../shared/keys/caller-key.ts';
import type { Process } from '../scheduler.ts';
import { requestOf } from './router-setup.ts';

/** The id of a complete event. */
const EVENT = /id: (\S+)\n(?:.+\n)*\n/g;

export interface AskedCall {
  number: number;
  key: CallerKey;
  stream: boolean;
  isDetached: boolean;
}

/** A client's request at a gateway, and what it gets back. Stands for Fastify's reply and the socket below. */
export class SimulatedClient {
  readonly asked: AskedCall;
  /** What was read before a resume; null: this is no resume. */
  readonly #before: { text: string; lastEventId: string | null } | null;
  #isContinued = false;
  readonly gateway: Process;
  readonly #raw = new SimulatedSocket();
  readonly #headers = new Map<string, string>();
  #status = 200;
  /** Null: no response has ended. A stream's is 200, whatever it ended with. */
  status: number | null = null;
  hasLeft = false;

  /** @param before whose stream this one continues */
  constructor(asked: AskedCall, gateway: Process, before: SimulatedClient | null = null) {
    this.asked = asked;
    this.gateway = gateway;
    this.#before = before === null ? null : before.#read;
    if (before !== null) before.#isContinued = true;
  }

  get isResumed(): boolean {
    return this.#before !== null;
  }

  /** Null: refused before the call had an id. */
  get callId(): string | null {
    return this.#headers.get('x-generation-id') ?? null;
  }

  /** The text of the answer so far. */
  get body(): string {
    return this.#raw.text;
  }

  /** With what was read before a resume. */
  get wholeBody(): string {
    return `${this.#before?.text ?? ''}${this.body}`;
  }

  /** A stream that has begun and not ended. */
  get isResumable(): boolean {
    return this.asked.stream && !this.#isContinued && this.status === null && this.#read.lastEventId !== null;
  }

  /** The events that have arrived whole, also those before a resume. */
  get #read(): { text: string; lastEventId: string | null } {
    const last = [...this.#raw.text.matchAll(EVENT)].at(-1);
    const text = last === undefined ? '' : this.#raw.text.slice(0, last.index + last[0].length);
    return { text: `${this.#before?.text ?? ''}${text}`, lastEventId: last?.[1] ?? this.#before?.lastEventId ?? null };
  }

  get isOver(): boolean {
    return this.status !== null || this.hasLeft || this.gateway.state === 'dead';
  }

  send(handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): void {
    const { number, stream, key, isDetached } = this.asked;
    const body = requestOf(number, stream);
    const request = {
      ...{ id: `r${number}`, body, bodyText: JSON.stringify(body), keyId: key.id, callerKey: key, admitted: null },
      headers: { ...(isDetached && { 'x-detach': 'true' }), ...(this.#before !== null && { 'last-event-id': this.#before.lastEventId }) },
    };
    handle(request as unknown as FastifyRequest, this.#reply() as unknown as FastifyReply).catch((error: unknown) => {
      if (process.env['DBG']) console.log(number, error);
      this.#ended(errorCatalogue[failureOf(error).code].status);
    });
    this.#raw.onEnd = () => this.#ended(200);
  }

  /** Closes the connection. */
  leave(): void {
    this.hasLeft = true;
    this.#raw.destroy();
  }

  #ended(status: number): void {
    if (this.hasLeft) return;
    this.status ??= status;
    this.#raw.destroy();
  }

  #reply() {
    const reply = {
      raw: this.#raw,
      header: (name: string, value: string) => {
        this.#headers.set(name, value);
        return reply;
      },
      getHeader: (name: string) => this.#headers.get(name),
      hijack: () => reply,
      code: (status: number) => {
        this.#status = status;
        return reply;
      },
      headers: () => reply,
      send: (body: Uint8Array) => {
        this.#raw.text = Buffer.from(body).toString('utf8');
        this.#ended(this.#status);
        return reply;
      },
    };
    return reply;
  }
}

/** What gateways use of a response's socket: all bytes are read at once. */
class SimulatedSocket extends EventEmitter {
  text = '';
  destroyed = false;
  closed = false;
  writableEnded = false;
  readonly writableLength = 0;
  onEnd = () => {};

  writeHead(): this {
    return this;
  }
  flushHeaders(): void {}
  cork(): void {}
  uncork(): void {}

  write(bytes: Uint8Array | string): boolean {
    this.text += typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8');
    return true;
  }

  end(last?: string): void {
    if (last !== undefined) this.write(last);
    this.writableEnded = true;
    this.onEnd();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.closed = true;
    queueMicrotask(() => this.emit('close'));
  }
}
