import type { AgentClient } from '#client/agent-client.ts';
import { AgentError } from '#client/agent-error.ts';
import type { ConnectionItem, FollowItem } from '#client/follow-item.ts';
import { breather } from '../breathe.ts';
import { Changes } from '../changes.ts';
import { whileShown } from '../while-shown.ts';
import { Conversation } from './conversation.ts';
import type { Outbox, Unsent } from './outbox.ts';

/** Read first of a session's log, and with each step back. */
const PAGE_EVENTS = 400;
/** A message whose sending failed eight times in a row is tried again after this, or as soon as the browser is online. */
const SEND_AGAIN_MS = 3_000;
const TITLE_CHARACTERS = 80;

export interface ChatDeps {
  client: AgentClient;
  outbox: Outbox;
  newKey(): string;
  /** The session has been made: the address of the page is to name it. */
  onSession(sessionId: string): void;
  /** Resolves after the time, or when the browser is online again. */
  pause(ms: number): Promise<void>;
}

/** One conversation: follows its log, sends its messages. */
export class Chat {
  readonly changes = new Changes();
  conversation = new Conversation(-1);
  connection: ConnectionItem | null = null;
  /** The newest whole message of the agent that came while the page was open, for screen readers. */
  announced = '';
  /** Why the conversation can't go on: `unauthorized`, `not_found`, or another code. Null: it can. */
  failure: AgentError | null = null;
  isLoading = false;
  sessionId: string | null;
  readonly #deps: ChatDeps;
  #isSending = false;

  constructor(sessionId: string | null, deps: ChatDeps) {
    this.sessionId = sessionId;
    this.#deps = deps;
  }

  get unsent(): Unsent[] {
    return this.#deps.outbox.of(this.sessionId);
  }

  open(): void {
    if (this.sessionId !== null) void this.#follow(this.sessionId);
    void this.#sendAll();
  }

  /** @returns whether it was taken: not while too many wait */
  send(text: string): boolean {
    const { outbox, newKey } = this.#deps;
    if (outbox.isFull) return false;
    outbox.add({ key: newKey(), text, sessionId: this.sessionId, after: this.conversation.lastOffset });
    this.changes.emit();
    void this.#sendAll();
    return true;
  }

  discard(key: string): void {
    this.#deps.outbox.remove(key);
    this.changes.emit();
  }

  /** Loads events before the first one. */
  async loadEarlier(): Promise<void> {
    const { conversation, sessionId } = this;
    if (this.isLoading || sessionId === null || !conversation.hasEarlier) return;
    this.isLoading = true;
    this.changes.emit();
    const from = Math.max(0, conversation.firstOffset - PAGE_EVENTS);
    try {
      conversation.prepend(await this.#deps.client.events.list(sessionId, { min_offset: from, limit: PAGE_EVENTS }), from);
    } catch (error) {
      if (isFinal(error)) this.#fail(error);
    } finally {
      this.isLoading = false;
      this.changes.emit();
    }
  }

  async #follow(sessionId: string): Promise<void> {
    const { client } = this.#deps;
    const breathe = breather();
    try {
      const { last_offset: lastOffset } = await this.#retrying(() => client.sessions.get(sessionId));
      this.conversation = new Conversation(Math.max(-1, lastOffset - PAGE_EVENTS));
      this.changes.emit();
      await whileShown(async (signal) => {
        for await (const item of client.events.follow(sessionId, { after: this.conversation.lastOffset, signal })) {
          this.#read(sessionId, item, lastOffset);
          this.changes.emit();
          await breathe();
        }
        // Pieces of them that come meanwhile are not sent again: a snapshot has the whole text, or the log has the message.
        this.conversation.openReplies.clear();
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @param newAfter offset of the last event that was there when the page was opened */
  #read(sessionId: string, item: FollowItem, newAfter: number): void {
    this.conversation.read(item);
    if (item.type === 'connection') this.connection = item;
    if (item.type !== 'event') return;
    const { event } = item;
    if (event.kind === 'user_message' && typeof event.text === 'string') this.#deps.outbox.onEvent(sessionId, { ...event, text: event.text });
    if (event.kind === 'assistant_message' && event.offset > newAfter && typeof event.text === 'string') this.announced = event.text;
  }

  /** One at a time, so that they keep their order. */
  async #sendAll(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (let next = this.#nextUnsent(); next !== undefined; next = this.#nextUnsent()) await this.#sendOne(next);
    } finally {
      this.#isSending = false;
    }
  }

  #nextUnsent(): Unsent | undefined {
    return this.failure === null ? this.unsent.find(({ state }) => state === 'sending') : undefined;
  }

  async #sendOne(message: Unsent): Promise<void> {
    const { client, outbox } = this.#deps;
    try {
      const sessionId = this.sessionId ?? (await this.#makeSession(message));
      const { event } = await this.#retrying(() => client.messages.send(sessionId, message.text, { idempotencyKey: message.key }));
      message.state = 'accepted';
      message.eventId = event?.id ?? null;
      // The log may have been faster than the answer.
      const isInLog = this.conversation.entries.some(({ key }) => key === message.eventId);
      if (isInLog) outbox.remove(message.key);
      else outbox.save();
    } catch (error) {
      if (isUnauthorized(error)) return this.#fail(error);
      message.state = 'refused';
      message.problem = problemOf(error);
      outbox.save();
    } finally {
      this.changes.emit();
    }
  }

  async #makeSession({ key, text }: Unsent): Promise<string> {
    const { client, outbox, onSession } = this.#deps;
    const title = text.trim().replace(/\s+/g, ' ').slice(0, TITLE_CHARACTERS);
    const { id } = await this.#retrying(() => client.sessions.create({ title }, { idempotencyKey: `${key}-session` }));
    for (const waiting of outbox.of(null)) waiting.sessionId = id;
    outbox.save();
    this.sessionId = id;
    onSession(id);
    void this.#follow(id);
    return id;
  }

  /** Repeats while the failure is transient. The requests have idempotency keys. */
  async #retrying<Value>(attempt: () => Promise<Value>): Promise<Value> {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof AgentError && error.isTransient)) throw error;
        await this.#deps.pause(Math.max(SEND_AGAIN_MS, error.retryAfterMs ?? 0));
      }
    }
  }

  #fail(error: unknown): void {
    this.failure = error instanceof AgentError ? error : new AgentError('client.failed', String(error));
    this.changes.emit();
  }
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof AgentError && error.status === 401;
}

function isFinal(error: unknown): boolean {
  return isUnauthorized(error) || (error instanceof AgentError && error.status === 404);
}

function problemOf(error: unknown): string {
  return error instanceof AgentError ? `${error.message} (${error.code})` : String(error);
}
