import type { EffectRow } from '#actors/effects/effect-row.ts';
import { effects } from '#actors/effects/registry.ts';
import type { RenderDeps } from '#actors/effects/render-deps.ts';
import { engineDocumentsOf } from '#actors/engine/engine-documents.ts';
import type { Evaluations } from '#actors/engine/evaluation/evaluation-set.ts';
import { greetingOf } from '#actors/engine/greeting-of.ts';
import type { TurnRow } from '#actors/engine/turn-row.ts';
import type { KnownCustomer } from '#actors/inputs/customer-reader.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import type { ListedTool, ToolWork } from '#bus/messages/tool.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { ConversationEvent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import { headerOf, SessionInMemory, type SessionPast } from './session-in-memory.ts';

/** As histories of the runtime. */
const MAX_HISTORY_MESSAGES = 400;
const MAX_TOKENS = 100_000;
/** Steps of a turn: passes of matching, tools and repeats of malformed answers. More is a turn that does not end. */
const MAX_ROUNDS = 1_000;

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** What a model call brings. */
export type ModelAnswer =
  | ({ type: 'completed' } & Pick<CommandOf<'call.completed'>, 'text' | 'toolCalls' | 'model' | 'provider' | 'finishReason' | 'usage'>)
  | { type: 'failed'; failure: Failure };

/** Makes the effects of a conversation. */
interface Answers {
  model(call: RouterCall, effect: EffectRow): Promise<ModelAnswer>;
  tool(call: Extract<ToolWork, { type: 'call' }>): ToolOutcome;
}

export type Post =
  | { type: 'message'; source: EventSource; text: string; triggersTurn: boolean }
  | { type: 'tool-result'; toolId: string; arguments: Record<string, unknown>; result: unknown; triggersTurn: boolean };

/** What some messages led to. */
export interface Exchange {
  /** In order, the posted ones included. */
  events: ConversationEvent[];
  /** Of the turn; empty where it was one model call, or where none began. */
  rows: TurnRow[];
}

interface ConversationDeps {
  bundle: Bundle;
  evaluations: Evaluations;
  /** By server. */
  tools: Readonly<Record<string, readonly ListedTool[]>>;
  /** Null: the session is new. */
  past: SessionPast | null;
  /** What prompts know of the customer. */
  customer: KnownCustomer;
  answers: Answers;
}

/** A conversation with an agent, in memory: actors, prompts and decisions are those of the product, effects are made by `answers`. */
export class Conversation {
  readonly #session: SessionInMemory;
  readonly #deps: ConversationDeps;
  readonly #rendering: RenderDeps;

  /** @param startedAtMs epoch ms */
  constructor(deps: ConversationDeps, startedAtMs: number) {
    const { bundle, evaluations, tools, past } = deps;
    this.#deps = deps;
    const documents = engineDocumentsOf(bundle.body, evaluations);
    this.#session = new SessionInMemory({ hash: bundle.hash, greeting: greetingOf(bundle.body), documents, tools }, past, startedAtMs);
    this.#rendering = renderingOf(this.#session, deps);
  }

  get log(): readonly ConversationEvent[] {
    return this.#session.log;
  }

  /** Posts messages at the same time, and makes all that follows from them. @throws what a machine or a prompt throws */
  async exchange(posts: readonly Post[], atMs: number): Promise<Exchange> {
    const [from, turns] = [this.#session.log.length, this.#session.turnIds.length];
    for (const post of posts) this.#session.apply(this.#commandOf(post, atMs), atMs);
    for (let round = 0; this.#session.open.size > 0; round += 1) {
      if (round === MAX_ROUNDS) throw new Error(`a turn has not ended after ${MAX_ROUNDS} rounds of calls`);
      await this.#makeOpen(atMs);
    }
    const rows = this.#session.turnIds.slice(turns).flatMap((turnId) => this.#session.rowsOf(turnId));
    return { events: this.#session.log.slice(from), rows };
  }

  /** Side by side, as in the product; results are applied in the order in which the effects were opened. */
  async #makeOpen(atMs: number): Promise<void> {
    const results = await Promise.all([...this.#session.open.values()].map(async (effect) => ({ effect, command: await this.#resultOf(effect, atMs) })));
    for (const { effect, command } of results) {
      if (!this.#session.open.has(effect.id)) continue;
      if (command !== null) this.#session.apply(command, atMs);
      // One without a result, such as a delivery, is not made.
      this.#session.open.delete(effect.id);
    }
  }

  async #resultOf(effect: EffectRow, atMs: number): Promise<SessionCommand | null> {
    const { work } = effects.kind(effect.kind);
    const header = { ...headerOf(effect.id, atMs), ...actorFields(effect.actorId), callId: effect.id };
    if (work !== 'router.turn' && work !== 'tool') return null;
    const item = JSON.parse(await effects.render(effect, false, this.#rendering)) as RouterCall | ToolWork;
    if ('toolId' in item) return { ...header, type: 'tool.completed', outcome: this.#deps.answers.tool(item) };
    if (!('request' in item)) return null;
    const answer = await this.#deps.answers.model(item, effect);
    if (answer.type === 'failed') return { ...header, type: 'call.failed', failure: answer.failure };
    const { text, toolCalls, model, provider, finishReason, usage } = answer;
    return { ...header, type: 'call.completed', text, toolCalls, model, provider, finishReason, usage };
  }

  #commandOf(post: Post, atMs: number): SessionCommand {
    const { triggersTurn } = post;
    const about = { metadata: {}, triggersTurn, traceId: this.#session.newTraceId(), bundleHash: this.#deps.bundle.hash };
    const header = headerOf(`post-${this.#session.newId()}`, atMs);
    if (post.type === 'message') return { ...header, type: 'message.post', source: messageSource(post.source), text: post.text, ...about };
    return { ...header, type: 'tool-event.post', toolId: post.toolId, arguments: post.arguments, result: post.result, resultMetadata: {}, ...about };
  }
}

function messageSource(source: EventSource): CommandOf<'message.post'>['source'] {
  return source === 'ai_agent' ? 'system' : source;
}

function renderingOf(session: SessionInMemory, { bundle, evaluations, customer }: ConversationDeps): RenderDeps {
  const none = () => Promise.resolve([]);
  return {
    runs: {
      load: none,
      transcript: none,
      assistantMessages: none,
      toolLists: async (hashes) => new Map(hashes.map((hash) => [hash, session.toolsOf(hash)])),
    },
    turns: { staged: async (turnIds) => new Map(turnIds.map((turnId) => [turnId, [...session.stagedOf(turnId)]])) },
    customers: { ofTurn: async () => customer },
    histories: { upTo: async (offset) => session.log.filter((event) => event.offset <= offset && isMessage(event)).slice(-MAX_HISTORY_MESSAGES) },
    bundleOf: async () => bundle,
    evaluationsOf: async () => evaluations,
    epochOf: () => undefined,
    settings: { streaming: false, maxTokens: MAX_TOKENS, modelKey: '', providerOrder: [] },
  };
}

function isMessage({ kind }: ConversationEvent): boolean {
  return kind === 'user_message' || kind === 'assistant_message' || kind === 'preamble' || kind === 'tool';
}
